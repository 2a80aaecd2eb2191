"""The masters that targets name."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.consumer.group.asking import Address
from dataproxy.errors import ConfigError
from dataproxy.masters.target import parse_target


@pytest.mark.parametrize(
    ("target", "masters", "tls"),
    [
        ("tubemq://m", [("m", 8715)], False),
        (" TubeMQ://M1:1, m2:65535 ", [("m1", 1), ("m2", 65535)], False),
        ("tubemqs://m1,m2:7", [("m1", 8716), ("m2", 7)], True),
        ("tubemq://b,a,B:8715,a:2,a:8715", [("b", 8715), ("a", 8715), ("a", 2)], False),
        ("tubemq://[::1],[2001:DB8:0::1]:9,[0::1]:8715", [("::1", 8715), ("2001:db8::1", 9)], False),
        ("tubemq://10.0.0.1:08715", [("10.0.0.1", 8715)], False),
        (["m1", "m2:2"], [("m1", 8715), ("m2", 2)], False),
        (("tubemqs://m1", "tubemqs://m2:2"), [("m1", 8716), ("m2", 2)], True),
        (["tubemq://m1", "m2"], [("m1", 8715), ("m2", 8715)], False),
        (["tubemq://m1,m2"], [("m1", 8715), ("m2", 8715)], False),
    ],
)
def test_masters_in_their_order_none_twice(target: Any, masters: list[tuple[str, int]], tls: bool) -> None:
    found = parse_target(target)
    assert found == (tuple(Address(*one) for one in masters), tls)
    assert isinstance(found.masters[0], Address)


def test_tls_by_an_argument() -> None:
    assert parse_target("tubemq://m,n:8715", tls=True) == ((("m", 8716), ("n", 8715)), True)
    assert parse_target(["m"], tls=True) == ((("m", 8716),), True)
    assert parse_target("tubemqs://m", tls=False).tls


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("", "target '' is not an address; write 'tubemq://master1:8715,master2:8715'"),
        ("  ", "is not an address; write 'tubemq://"),
        ("tubemq://", "target 'tubemq://' is not an address; write 'tubemq://"),
        (None, "target None is not an address; write 'tubemq://"),
        ([], r"target \[\] is not an address"),
        ({"m": 1}, "is not an address"),
        (["m", 5], r"target \['m', 5\] is not an address"),
        (["m", ""], "target 'm,' is not an address"),
        (b"tubemq://m", "is not an address"),
        ("m1:8715", "target 'm1:8715' has no scheme; write 'tubemq://"),
        ("http://m:8080", "has the unknown scheme 'http'; 8080 is the port of a master's web page; its port for"),
        ("tcp://m:46801", "has the unknown scheme 'tcp'; tcp:// is for the proxies that a producer sends to"),
        (
            "rocketmq://m:9876",
            "has the unknown scheme 'rocketmq'; Topics of RocketMQ are read by PushConsumer and Pull",
        ),
        ("tubmq://m", "has the unknown scheme 'tubmq'; write 'tubemq://"),
        (["http://m", "m2"], "has the unknown scheme 'http'"),
        (["m", "tubemqs://n"], "target 'm,tubemqs://n' has masters with and without TLS; give only one kind"),
        ("tubemq://m,tubemq://n", "has several schemes; write one, once"),
        ("tubemq://m,tubemqs://n", "has several schemes"),
        ("tubemq://m,,n", "has an empty address"),
        ("tubemq://m:", "has the port '', which is not a number; allowed is 1 .. 65535"),
        ("tubemq://m:x", "has the port 'x', which is not a number"),
        ("tubemq://m:8715/", "has the port '8715/', which is not a number"),
        ("tubemq://m:٣", "has the port '٣', which is not a number"),
        ("tubemq://m:0", "has the port 0, which is out of range; allowed is 1 .. 65535"),
        ("tubemq://m:65536", "has the port 65536, which is out of range"),
        ("tubemq://m:" + "9" * 5000, "which is out of range"),
        ("tubemq://::1", r"has '::1' with several colons; write IPv6 as \[2001:db8::1\]:8715"),
        ("tubemq://[::1", r"has '\[::1', which is not an address; write IPv6 as"),
        ("tubemq://[fe80::1%eth0]", r"has 'fe80::1%eth0' in brackets, which is not an IPv6 address"),
        ("tubemq://[::1]8715", r"has '\[::1\]8715', which is not an address"),
        ("tubemq://[10.0.0.1]", r"has '10.0.0.1' in brackets, which is not an IPv6 address; brackets are for IPv6"),
        ("tubemq://a b", "has 'a b', which is not a host name or an address"),
        ("tubemq://m/path", "has 'm/path', which is not a host name or an address"),
        ("tubemq://:8715", "has '', which is not a host name"),
        ("tubemq://m?user=x", r"target 'tubemq://m\?\*\*\*' holds '\?'; give addresses only"),
        (["m", "n#x"], "holds '#'; give addresses only"),
    ],
)
def test_whatever_is_no_target_says_what_is_wrong(target: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_target(target)
    assert len(str(caught.value)) < 800


def test_credentials_are_not_shown() -> None:
    for target in ("tubemq://me:s3cret@m", "me:s3cret@m", ["m", "me:s3cret@n"], "tubemq://m?token=s3cret"):
        with pytest.raises(ConfigError) as caught:
            parse_target(target)
        assert "s3cret" not in repr(caught.value)
        if "@" in str(target):
            assert "give credentials as user and password" in str(caught.value)
