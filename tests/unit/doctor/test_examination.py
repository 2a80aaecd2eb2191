"""Arguments that are not allowed, and the JSON form; nothing is sent here."""

import json

import pytest

from dataproxy.config import load_producer_config
from dataproxy.doctor import (
    Finding,
    Findings,
    Level,
    ManagerReport,
    MessageReport,
    NameReport,
    ProxyReport,
    TlsReport,
    examine,
)
from dataproxy.doctor.conversation import Foreign, start_of
from dataproxy.doctor.secure import trouble_of
from dataproxy.errors import ConfigError, InvalidMessageError


@pytest.mark.parametrize(
    ("target", "arguments", "words"),
    [
        ("tcp://", {}, "empty address"),
        ("ftp://h", {}, "unknown scheme"),
        ("tcp://h,http://m", {}, "mixes tcp:// and http://"),
        ("http://m", {}, "no group_id"),
        ("tcp://h", {"send": True}, "a group and a stream"),
        ("tcp://h", {"send": True, "group_id": "g"}, "a group and a stream"),
        (None, {"send": True, "group_id": "g", "stream_id": "s"}, "needs a target"),
        ("tcp://h", {"body": b"x"}, "nothing is to be sent"),
        ("tcp://h", {"send": True, "group_id": "g", "stream_id": "s", "body": bytes(1 << 20)}, "does not fit"),
        ("tcp://h", {"send": True, "group_id": "g", "stream_id": "s", "body": b"a\nb", "message_type": 3}, "line feed"),
        (
            "tcp://h:1",
            {"send": True, "group_id": "g", "stream_id": "s", "body": b"a\nb", "protocol": "http"},
            "line feed",
        ),
        ("tcp://h:1", {"send": True, "group_id": "g", "stream_id": "s", "body": b" ", "protocol": "http"}, "UTF-8"),
        ("tcp://h:1", {"send": True, "group_id": "g", "stream_id": "s", "body": b"\xff", "protocol": "http"}, "UTF-8"),
        ("tcp://h", {"timeout": 0}, "out of range"),
        ("tcp://h", {"timeout": 1e9}, "out of range"),
        ("tcp://h", {"timeout": float("nan")}, "timeout"),
        ("tcp://h", {"no_option": 1}, "no_option"),
        ("tls://h", {"tls_ca": "/nowhere/ca.pem"}, "cannot be read"),
    ],
)
def test_arguments_that_are_not_allowed(target, arguments, words):
    with pytest.raises(ConfigError, match=words):
        examine(target, **arguments)


@pytest.mark.parametrize("names", [{"group_id": "a&b"}, {"group_id": "g", "stream_id": "s="}, {"group_id": "\u00e9"}])
def test_names_that_no_producer_sends(names):
    with pytest.raises(InvalidMessageError):
        examine("tcp://h", send=True, **{"stream_id": "s", **names})


def test_a_settled_configuration_stands_alone():
    with pytest.raises(ConfigError, match="beside options"):
        examine("tcp://h", config=load_producer_config("tcp://h", env={}))


def test_this_machine_alone(monkeypatch):
    monkeypatch.delenv("DATAPROXY_TARGET", raising=False)
    lines = []
    found = examine(progress=lines.append)
    assert {one.check for one in found.findings} == {"version", "limit"}
    assert found.reachable
    assert found.finished
    assert lines == ["reading versions and limits"]
    assert (found.proxies, found.managers, found.names) == ([], [], [])


def test_the_json_form():
    found = Findings(
        "tcp://h:1",
        "g",
        "s",
        "2026-01-02T03:04:05+00:00",
        1.23456789,
        findings=[Finding("proxy", "h:1", Level.ERROR, "no", "means", "advice", "CONNECT_FAILED")],
        names=[NameReport("h", ["10.0.0.1"])],
        managers=[ManagerReport("http://m", status=200)],
        proxies=[
            ProxyReport(
                "h:1", "h", "10.0.0.1", 1, tls=TlsReport("TLSv1.3", "c"), message=MessageReport("m", "refused", 115)
            )
        ],
        limits={"cores": 2},
        versions={"dataproxy": "0"},
    )
    plain = json.loads(json.dumps(found.as_json()))
    assert (plain["format"], plain["ok"], plain["reachable"]) == (1, False, False)
    assert plain["counts"] == {"ok": 0, "note": 0, "warning": 0, "error": 1}
    assert plain["seconds"] == 1.234568
    assert plain["findings"][0]["level"] == "error"
    assert plain["proxies"][0]["message"]["code"] == 115
    assert plain["proxies"][0]["tls"]["version"] == "TLSv1.3"


@pytest.mark.parametrize(
    ("data", "kind", "shown"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n", "http", "'HTTP/1.1 400 Bad Request'"),
        (b"\r\n<!doctype HTML>", "http", "'<!doctype HTML>'"),
        (b"\x15\x03\x01\0\2\2\x46", "tls", "15 03 01 00 02 02 46"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "banner", "'SSH-2.0-OpenSSH_9.2'"),
        (b"-ERR unknown command\r\n", "banner", "'-ERR unknown command'"),
        (b"\xff" * 40, "garbage", "ff " * 16 + "..."),
        (b"\0\0\0\0", "garbage", "00 00 00 00"),
        (b"\x1b[2J\x1b[31mred", "garbage", "1b 5b 32 4a 1b 5b 33 31 6d 72 65 64"),
        (b"x" * 300, "banner", repr("x" * 48 + "...")),
    ],
)
def test_foreign_answers_are_recognised(data, kind, shown):
    assert Foreign(data).kind == kind
    assert start_of(data) == shown


def test_a_failure_of_tls_that_nobody_knows():
    import ssl

    told = trouble_of(ssl.SSLError(1, "[SSL: SOMETHING_ELSE] something else"))
    assert told.text.startswith("the TLS handshake failed")
