"""A file that lists proxies: every form that is taken, and each one that is not."""

import contextlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.errors import DiscoveryError
from dataproxy.producer.discovery import listfile
from dataproxy.producer.discovery.listfile import read_list
from dataproxy.producer.discovery.smallfile import file_state
from dataproxy.types import Endpoint

DATA = '{"clusterId": 3, "isSwitch": 2, "maxPacketLength": 9000, "nodeList": [{"id": 4, "ip": "h", "port": "5"}, NODE]}'
NODE = '{"id": 7, "ip": "10.0.0.1", "port": 46801, "protocolType": "TCP"}'
TWO = (Endpoint("h", 5), Endpoint("10.0.0.1", 46801))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "proxies"


def read(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_list(str(path))


@pytest.mark.parametrize(
    "content",
    [
        DATA.replace("NODE", NODE),
        '{"success": true, "errMsg": null, "data": DATA}'.replace("DATA", DATA).replace("NODE", NODE),
        b"\xef\xbb\xbf " + DATA.replace("NODE", NODE).encode(),
    ],
)
def test_inlongs_own_forms(path, content):
    found = read(path, content)
    assert (found.cluster_id, found.is_switch, found.max_packet_length) == (3, 2, 9000)
    assert (found.endpoints, found.ids) == (TWO, ("4", "7"))


@pytest.mark.parametrize(
    "content",
    ["h:5\n10.0.0.1", "# proxies\n\n  H:5  # the first\r\n10.0.0.1:46801\n\n", '["h:5", "10.0.0.1:46801", "h:5"]'],
)
def test_plain_addresses(path, content):
    found = read(path, content)
    assert (found.endpoints, found.cluster_id, found.ids) == (TWO, None, ())


@pytest.mark.parametrize("content", ["[2001:db8::1]:5\nh\n", "[::1]\n", "\ufeff[fe80::1]:5"])
def test_an_ipv6_address_may_be_the_first_line(path, content):
    found = read(path, content)
    assert [str(one) for one in found.endpoints] == [
        line if line.endswith(":5") else f"{line}:46801" for line in content.strip("\ufeff").split()
    ]


def test_one_bad_entry_hides_no_good_one(path):
    found = read(path, "h:5\n:::\n10.0.0.1\nh:0\n")
    assert found.endpoints == TWO
    assert found.ignored == (
        "entry 2: ':::': ':::' has several colons",
        "entry 4: 'h:0': port 0 is out of range",
    )
    found = read(path, DATA.replace("NODE", NODE + ', {"ip": "x", "port": 70000}, 5, {"ip": "::1 /", "port": 1}'))
    assert found.endpoints == TWO
    assert found.ignored == (
        "port 70000 - at `$.nodeList[2].port`",
        "Expected `object`, got `int` - at `$.nodeList[3]`",
        "'::1 /' is not an address - at `$.nodeList[4].ip`",
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "names no TCP proxy"),
        ("# nothing\n", "names no TCP proxy"),
        ("[]", "names no TCP proxy"),
        ("{}", "names no TCP proxy"),
        ('{"nodeList": [{"ip": "h", "port": 1, "protocolType": "HTTP"}]}', "names no TCP proxy"),
        ('{"nodeList": [{"ip": "h"}]}', "missing required field `port` - at `$.nodeList[0]`"),
        ("a b\n", "has no usable entry: entry 1: 'a b': 'a b' is not a host name or an address"),
        ('{"nodeList": ', "is not JSON"),
        ("[1]", "is not a JSON list of texts"),
        ("[" * 100, "is nested too deeply"),
        ('{"success": false, "errMsg": "unknown group"}', "holds an answer that reports a failure: 'unknown group'"),
        (b"\xff\xfeh", "is not UTF-8"),
        ("\n".join(f"h{i}" for i in range(10_001)), "names 10001 proxies, more than 10000"),
        (b" " * ((8 << 20) + 1), "has more than 8388608 bytes"),
    ],
    ids=range(14),
)
def test_bad_files(path, content, why):
    with pytest.raises(DiscoveryError) as caught:
        read(path, content)
    assert why in caught.value.message
    assert str(path) in caught.value.message
    assert (caught.value.code, caught.value.retriable) == ("LIST_FILE", True)


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for name, why in (
        ("absent", "No such file"),
        ("fifo", "it is not a regular file"),
        (".", "it is not a regular file"),
    ):
        with pytest.raises(DiscoveryError, match=why):
            read_list(str(tmp_path / name))


def test_a_change_is_seen_by_what_the_file_system_says(path, tmp_path):
    assert file_state(str(path)) is None
    path.write_text("h:5")
    before = file_state(str(path))
    assert file_state(str(path)) == before
    (tmp_path / "new").write_text("h:6")
    (tmp_path / "new").rename(path)
    assert file_state(str(path)) not in (None, before)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_list_or_an_error_that_says_why(content):
    with contextlib.suppress(ValueError):
        found = listfile._decode(content, "TCP")
        assert isinstance(found, str) or all(one.host and one.port for one in found.endpoints)


def test_entries_of_the_protocol_that_is_spoken_are_used(tmp_path):
    path = tmp_path / "proxies.json"
    path.write_text(
        '{"nodeList": [{"ip": "a", "port": 1, "protocolType": "TCP"}, {"ip": "b", "port": 2, "protocolType": "HTTP"}]}'
    )
    assert read_list(str(path)).endpoints == (("a", 1),)
    assert read_list(str(path), "HTTP").endpoints == (("b", 2),)
    path.write_text('{"nodeList": [{"ip": "a", "port": 1, "protocolType": "TCP"}]}')
    with pytest.raises(DiscoveryError, match="names no HTTP proxy"):
        read_list(str(path), "HTTP")


@pytest.mark.parametrize("content", ["h:5\nbare\n[::1]\n", '["h:5", "bare", "[::1]"]'])
def test_the_http_report_has_no_usual_port(tmp_path, content):
    path = tmp_path / "proxies"
    path.write_text(content)
    assert read_list(str(path)).endpoints == (("h", 5), ("bare", 46801), ("::1", 46801))
    found = read_list(str(path), "HTTP")
    assert found.endpoints == (("h", 5),)
    assert found.ignored == ("entry 2: 'bare' has no port", "entry 3: '[::1]' has no port")
    path.write_text("bare\n")
    with pytest.raises(DiscoveryError, match="has no usable entry: entry 1: 'bare' has no port"):
        read_list(str(path), "HTTP")
