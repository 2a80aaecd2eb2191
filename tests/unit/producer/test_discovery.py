"""Target texts, addresses and changes of lists."""

import contextlib
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.config import load_producer_config
from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.producer.discovery import targets as discovery
from dataproxy.producer.discovery.proxies import ProxySource
from dataproxy.producer.discovery.targets import (
    DnsTarget,
    Endpoint,
    FileTarget,
    ManagerTarget,
    StaticTarget,
    diff,
    parse_target,
    resolve,
)
from tests.support.discovery import Told, refresh


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("tcp://h", [("h", 46801)]),
        ("tcp://h:1", [("h", 1)]),
        (" TCP://H1:1, h2:65535 ", [("h1", 1), ("h2", 65535)]),
        ("tcp://10.0.0.1:5,10.0.0.1:6", [("10.0.0.1", 5), ("10.0.0.1", 6)]),
        ("tcp://[::1]:5,[2001:DB8::1]", [("::1", 5), ("2001:db8::1", 46801)]),
        ("tcp://my_host.example-1.com", [("my_host.example-1.com", 46801)]),
    ],
)
def test_static_targets(text, endpoints):
    expected = tuple(Endpoint(*pair) for pair in endpoints)
    assert parse_target(text) == StaticTarget(expected)
    assert parse_target(text.lower().replace("tcp://", "tls://")) == StaticTarget(expected, tls=True)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://manager:8083", "http://manager:8083"),
        ("HTTPS://Manager/", "https://manager"),
        ("http://m:8083/prefix/", "http://m:8083/prefix"),
        ("http://[::1]:8083", "http://[::1]:8083"),
        ("http://m:46801", "http://m:46801"),
        ("http://127.0.0.1:8083/inlong/manager/openapi/dataproxy/getIpList", "http://127.0.0.1:8083"),
        ("http://m/gate/inlong/manager/openapi/dataproxy/getIpList/group", "http://m/gate"),
    ],
)
def test_manager_targets(text, url):
    assert parse_target(text) == ManagerTarget(url)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://m:8083/getIpListByClusterName/west", ManagerTarget("http://m:8083", (), "west")),
        (
            "http://a,b/gate/getIpListByClusterName/w%20%2Fx/",
            ManagerTarget("http://a/gate", ("http://b/gate",), "w /x"),
        ),
        (
            "https://m/inlong/manager/openapi/dataproxy/getIpListByClusterName/west",
            ManagerTarget("https://m", (), "west"),
        ),
        ("file:///etc/proxies.json", FileTarget("/etc/proxies.json")),
        ("FILE:///a%20b/@c", FileTarget("/a b/@c")),
        ("dns://Proxies.example", DnsTarget(Endpoint("proxies.example", 46801))),
        ("dns://proxies.example:7", DnsTarget(Endpoint("proxies.example", 7))),
    ],
)
def test_targets_of_other_kinds(text, target):
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("http://a:8083,b:8084", ["http://a:8083", "http://b:8084"]),
        ("https://a, [::1]:8083/gate/", ["https://a/gate", "https://[::1]:8083/gate"]),
        ("http://a/one, HTTP://b,c/two", ["http://a/one", "http://b/two", "http://c/two"]),
    ],
)
def test_several_managers(text, urls):
    found = parse_target(text)
    assert found == ManagerTarget(urls[0], tuple(urls[1:]))
    assert parse_target(str(found)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "target '' is not an address; write 'tcp://host1:46801,host2:46801' for proxies, 'http://"),
        (None, "target None is not an address"),
        ("h:46801", "target 'h:46801' has no scheme; write 'tcp://"),
        ("htpp://m", "target 'htpp://m' has the unknown scheme 'htpp'; did you mean http://? write"),
        ("kafka://m", "target 'kafka://m' has the unknown scheme 'kafka'; write 'tcp://"),
        ("tcp://", "target 'tcp://' has an empty address"),
        ("tcp://a,,b", "target 'tcp://a,,b' has an empty address"),
        ("tcp://a b", "target 'tcp://a b': 'a b' is not a host name or an address"),
        ("tcp://a\x01b", "'a\\x01b' is not a host name or an address"),
        ("tcp://" + "a" * 256, "a...' is not a host name or an address"),
        ("tcp://:5", "target 'tcp://:5': '' is not a host name or an address"),
        ("tcp://a:", "target 'tcp://a:': port '' is not a number; allowed is 1 .. 65535"),
        ("tcp://a:0", "target 'tcp://a:0': port 0 is out of range; allowed is 1 .. 65535"),
        ("tcp://a:65536", "target 'tcp://a:65536': port 65536 is out of range"),
        ("tcp://a:99999999999999", "port 99999999999999 is out of range"),
        ("tcp://a:-1", "port '-1' is not a number"),
        ("tcp://a:٣", "port '٣' is not a number"),
        ("tcp://a:1/x", "port '1/x' is not a number"),
        ("tls://a,tcp://b", "target 'tls://a,tcp://b' mixes tls:// and tcp://; give one kind of target"),
        ("tcp://a,http://b", "target 'tcp://a,http://b' mixes tcp:// and http://"),
        ("tcp://a:1,A:1", "target 'tcp://a:1,A:1' names a:1 twice; name each proxy once"),
        ("tcp://::1", "'::1' has several colons; write IPv6 as [2001:db8::1]:46801"),
        ("tcp://[::1", "'[::1' is not an address; write IPv6 as"),
        ("tcp://[::1]5", "'[::1]5' is not an address"),
        ("tcp://[h]:5", "'h' is not an IPv6 address; brackets are for IPv6 addresses only"),
        ("http://", "target 'http://' has no host"),
        ("http:///path", "target 'http:///path' has no host"),
        ("http://a:x", "port 'x' is not a number"),
        ("http://a,,b", "target 'http://a,,b' has an empty address"),
        ("http://a:1,http://A:1", "names http://a:1 twice; name each Manager once"),
        ("http://a,https://b", "contains several schemes; write several Managers as 'http://host1:8083,host2:8083'"),
        ("http://a,tcp://b", "mixes http:// and tcp://; give one kind of target"),
        ("dns://a,file:///b", "mixes dns:// and file://; give one kind of target"),
        ("tcp://a:1,tcp://b:2", "repeats 'tcp://'; write it once: 'tcp://host1:46801,host2:46801'"),
        ("http://a/getIpListByClusterName", "names no cluster; write its name behind getIpListByClusterName/"),
        ("http://a/getIpListByClusterName/", "names no cluster"),
        ("http://a/getIpListByClusterName/x/y", "has '/' in the name of a cluster; write it as %2F"),
        (
            "http://a/getIpListByClusterName/x,http://b",
            "names different clusters; ask all Managers for the same cluster",
        ),
        (
            "file://",
            "target 'file://' names no file by an absolute path; write e.g. 'file:///etc/dataproxy/proxies.json'",
        ),
        ("file://relative/path", "names no file by an absolute path"),
        ("file:///folder/", "names no file by an absolute path"),
        ("file:///a%00b", "names no file by an absolute path"),
        ("dns://", "target 'dns://' has an empty address"),
        ("dns://a,b", "contains several names; give one name, whose addresses are the proxies"),
        ("dns://10.0.0.1:5", "10.0.0.1 is an address, not a name; write 'tcp://10.0.0.1:5'"),
        ("dns://[::1]:5", "::1 is an address, not a name; write 'tcp://[::1]:5'"),
        ("dns://a/b", "'a/b' is not a host name"),
        ("http://a/x,b/y", "contains ',' in a path; write several Managers as"),
        ("http://a?b", "holds '?'; give the Manager's base URL only"),
        ("http://a/b#c", "holds '#'"),
        ("http://a/b c", "contains spaces"),
    ],
)
def test_bad_targets(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_target(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["http://user:s3cret@m", "tcp://user:s3cret@h:1", "user:s3cret@h"])
def test_credentials_in_a_target_are_refused_and_not_repeated(text):
    with pytest.raises(ConfigError, match="manager_secret_id") as caught:
        parse_target(text)
    assert "s3cret" not in str(caught.value) + repr(caught.value.details)


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_a_config_error(text):
    for prefix in ("", "tcp://", "http://", "file://", "dns://", "http://m/getIpListByClusterName/"):
        with contextlib.suppress(ConfigError):
            parse_target(prefix + text)


def fake_resolver(monkeypatch, table):
    def getaddrinfo(host, port, type):  # noqa: A002
        assert type == socket.SOCK_STREAM
        answer = table[host]
        if isinstance(answer, Exception):
            raise answer
        return [
            (socket.AF_INET6, type, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, type, 6, "", (address, port))
            for address in answer
        ]

    monkeypatch.setattr(discovery.socket, "getaddrinfo", getaddrinfo)


def test_resolve(monkeypatch):
    table = {
        "both": ["::5", "10.0.0.5"],
        "lots": ["::8", "10.0.0.7", "10.0.0.8", "10.0.0.9", "::9"],
        "six": ["::6"],
        "many": ["10.0.0.1", "10.0.0.2", "10.0.0.1"],
        "10.0.0.2": ["10.0.0.2"],
    }
    fake_resolver(monkeypatch, table)
    found = resolve([Endpoint(host, 7) for host in table])
    assert found == [
        ("both", 7, socket.AF_INET, "10.0.0.5", "both:7 (10.0.0.5)", "::5", ""),
        ("lots", 7, socket.AF_INET, "10.0.0.7", "lots:7 (10.0.0.7)", "::8", ""),
        ("lots", 7, socket.AF_INET, "10.0.0.8", "lots:7 (10.0.0.8)", "::9", ""),
        ("lots", 7, socket.AF_INET, "10.0.0.9", "lots:7 (10.0.0.9)", "::8", ""),
        ("six", 7, socket.AF_INET6, "::6", "six:7 (::6)", "", ""),
        ("many", 7, socket.AF_INET, "10.0.0.1", "many:7 (10.0.0.1)", "", ""),
        ("many", 7, socket.AF_INET, "10.0.0.2", "many:7 (10.0.0.2)", "", ""),
    ]
    every = resolve([Endpoint("lots", 7)], every=True)
    assert [one.address for one in every] == ["10.0.0.7", "10.0.0.8", "10.0.0.9", "::8", "::9"]
    assert {one.other for one in every} == {""}


def test_a_name_without_an_address_is_named(monkeypatch):
    fake_resolver(monkeypatch, {"empty": [], "good": ["10.0.0.1"]})
    with pytest.raises(
        DiscoveryError, match=r"'empty' \(the name service knows the name, and no address of it\)"
    ) as caught:
        resolve([Endpoint("empty", 7)], strict=False, every=True)
    assert caught.value.code == "UNRESOLVED_HOST"
    assert [one.host for one in resolve([Endpoint("empty", 7), Endpoint("good", 7)], strict=False)] == ["good"]


def test_resolve_numeric_addresses():
    assert resolve([Endpoint("127.0.0.1", 5), Endpoint("::1", 6)]) == [
        ("127.0.0.1", 5, socket.AF_INET, "127.0.0.1", "127.0.0.1:5", "", ""),
        ("::1", 6, socket.AF_INET6, "::1", "[::1]:6", "", ""),
    ]


def test_unresolvable_hosts_are_all_named(monkeypatch):
    table = {
        "good": ["10.0.0.1"],
        "bad": socket.gaierror(-2, "Name or service not known"),
        "worse": socket.gaierror(-3, "Temporary failure in name resolution"),
        "odd": UnicodeError("label too long"),
    }
    fake_resolver(monkeypatch, table)
    endpoints = [Endpoint(host, 7) for host in table]
    with pytest.raises(DiscoveryError) as caught:
        resolve(endpoints)
    assert str(caught.value) == (
        "no address found for 'bad' (Name or service not known), 'worse' (Temporary failure in name resolution),"
        " 'odd' (it is not a valid host name (label too long)); check the spelling and the name"
        " service (DNS) [UNRESOLVED_HOST]"
    )
    assert set(caught.value.details["hosts"]) == {"bad", "worse", "odd"}
    assert [entry.host for entry in resolve(endpoints, strict=False)] == ["good"]
    with pytest.raises(DiscoveryError):
        resolve(endpoints[1:], strict=False)


def test_errors_show_the_beginning_of_what_is_very_long(monkeypatch):
    names = [f"n{i}" for i in range(1000)]
    for text in ("tcp://" + "a" * 100_000, "tcp://h:" + "1" * 100_000, "tcp://" + ",".join(["h:1"] * 10_000)):
        with pytest.raises(ConfigError) as caught:
            parse_target(text)
        assert len(str(caught.value)) < 1000
    fake_resolver(monkeypatch, {name: socket.gaierror(-2, "Name or service not known") for name in names})
    with pytest.raises(DiscoveryError, match=r"'n4' \(.*\), and 995 more names; check") as failed:
        resolve([Endpoint(name, 7) for name in names])
    assert set(failed.value.details["hosts"]) == set(names)


def test_a_name_that_fails_for_a_moment_keeps_what_is_known_of_it(monkeypatch):
    table = {"a": ["10.0.0.1"], "b": ["10.0.0.2", "::2"], "c": ["10.0.0.3"]}
    fake_resolver(monkeypatch, table)
    endpoints = [Endpoint(host, 7) for host in table]
    before = resolve(endpoints)
    table["b"] = socket.gaierror(-3, "Temporary failure in name resolution")
    assert resolve(endpoints, strict=False, known=before) == before
    assert resolve(endpoints[:2], strict=False, known=before) == before[:2], "who left the list is gone"
    table["b"] = ["10.0.0.9"]
    assert [one.address for one in resolve(endpoints, strict=False, known=before)] == [
        "10.0.0.1",
        "10.0.0.9",
        "10.0.0.3",
    ]
    for host in table:
        table[host] = socket.gaierror(-3, "Temporary failure in name resolution")
    assert resolve(endpoints, strict=False, known=before) == before


def test_a_refresh_without_a_name_changes_nothing(monkeypatch):
    table = {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}
    fake_resolver(monkeypatch, table)
    told = Told()
    source = ProxySource(load_producer_config("tcp://a:7,b:7", env={}), told)
    source.begin()
    before = source.known
    table["a"] = OSError(5, "the name service is away")
    refresh(source)
    assert (told.pictures, source.known) == ([], before)
    table["a"] = ["10.0.0.3"]
    refresh(source)
    assert told.addresses() == [["10.0.0.3", "10.0.0.2"]]


def test_names_are_looked_up_side_by_side(monkeypatch):
    together = threading.Barrier(3, timeout=60)

    def getaddrinfo(host, port, **_):
        together.wait()
        return [(socket.AF_INET, 1, 6, "", (f"10.0.0.{host[1:]}", port))]

    monkeypatch.setattr(discovery.socket, "getaddrinfo", getaddrinfo)
    found = resolve([Endpoint(f"h{i}", 7) for i in range(3)])
    assert [one.address for one in found] == ["10.0.0.0", "10.0.0.1", "10.0.0.2"], "in the order of the list"


def test_many_names(monkeypatch):
    fake_resolver(monkeypatch, {f"h{i}": [f"10.0.{i // 250}.{i % 250}"] for i in range(1000)})
    assert len(resolve([Endpoint(f"h{i}", 7) for i in range(1000)])) == 1000


def test_a_look_up_that_hangs_is_given_up(monkeypatch):
    hang = threading.Event()

    def getaddrinfo(host, port, **_):
        if host == "slow":
            hang.wait(60)
        return [(socket.AF_INET, 1, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr(discovery.socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(discovery, "_LOOK_UP_SECONDS", 0.2)
    endpoints = [Endpoint("slow", 7), Endpoint("fast", 7)]
    assert [one.host for one in resolve(endpoints, strict=False)] == ["fast"]
    with pytest.raises(DiscoveryError, match=r"'slow' \(no answer within 0\.2 s\)"):
        resolve(endpoints)
    hang.set()


def test_diff():
    a, b, c = (Endpoint(name, 1) for name in "abc")
    assert diff([a, b], [c, b, b]) == ((c,), (a,), (b,))
    assert diff([], [a]) == ((a,), (), ())
    assert diff([a, b], [b, a]) == ((), (), (a, b))
    assert diff([a], [Endpoint("a", 2)]) == ((Endpoint("a", 2),), (a,), ())
