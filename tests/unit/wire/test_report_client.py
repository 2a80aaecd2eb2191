"""HTTP report, client role: requests that servers of all kinds understand, and answers of all kinds of servers."""

from __future__ import annotations

import urllib.parse

import pytest

from dataproxy.numbers import FAMILY_REPORT
from tests.native.probe_wire import ProbeError, Server, Wire
from tests.support.reference import report
from tests.support.reference.vectors import NOW_MS
from tests.unit.wire.contract import Feed, check_corruption, check_splits, check_truncation

WIRE = Wire("http")
NAMES = b"groupId=g&streamId=s"


def frame(body: bytes, names: bytes = NAMES, **spec: object) -> bytes:
    return WIRE.frame(body, names, **{"family": FAMILY_REPORT, "items": 2, "count": 1, "data_time_ms": 17, **spec})


def test_a_request_is_what_it_says():
    first, headers, body = report.split(frame(b"a b\nc=%&\xc3\xa4", b"groupId=g&streamId=\xc3\xb6 x", count=2))
    assert first == "POST /dataproxy/message HTTP/1.1"
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert int(headers["content-length"]) == len(body)
    assert urllib.parse.parse_qsl(body.decode(), strict_parsing=True) == [
        ("body", "a b\nc=%&ä"), ("groupId", "g"), ("streamId", "ö x"), ("dt", "17"), ("cnt", "2")
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 100, 20_000])
def test_every_byte_travels(size):
    body = bytes(range(256)) * size
    assert Server(wire="http").serve(frame(body), NOW_MS)["action"] == "store"
    text = report.split(frame(body))[2].decode()
    fields = text.partition("&")[0].removeprefix("body=").replace("+", " ")
    assert urllib.parse.unquote_to_bytes(fields) == body


@pytest.mark.parametrize("name", [b"127.0.0.1:46802", b"[::1]:1", b"h" * 64])
def test_the_server_is_named_when_it_is_known(name):
    for request in (frame(b"x"), WIRE.heartbeat(8, NOW_MS)):
        named = WIRE.address(request, name)
        assert len(named) == len(request)
        assert report.split(named)[1]["host"] == name.decode()
        assert WIRE.address(WIRE.address(request, b"another:1"), name) == named
        assert Server(wire="http").serve(named, NOW_MS)["code"] == 0


def test_heartbeats_are_requests_of_their_own():
    outcome = Server(wire="http").serve(WIRE.heartbeat(1, NOW_MS), NOW_MS)
    assert report.answer_text(outcome["reply"]) == (0, "Ok", "")


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"items": 0}, -6),
        ({"items": 1}, -6),
        ({"compressed": True}, -6),
        ({"count": 0}, -6),
        ({"data_time_ms": -1}, -6),
        ({"count": 65_536}, -3),
    ],
)
def test_what_no_form_can_say_is_refused(spec, status):
    with pytest.raises(ProbeError) as error:
        frame(b"x", **spec)
    assert error.value.status == status


def test_only_lines_travel():
    assert [number for number in range(9) if WIRE.family(number) is not None] == []
    assert WIRE.family(FAMILY_REPORT) == (True, False)


def answered(body: bytes, status: str = "200 OK", *headers: str, length: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if length else [])]
    return "\r\n".join([*lines, "", ""]).encode() + body


def read(data: bytes) -> tuple[int, bytes, bool]:
    assert WIRE.delimit(data) == (0, len(data))
    event = WIRE.parse_reply(data)
    assert event["kind"] == 1
    assert event["seq"] is None
    assert event["unsure"] == (200 <= event["code"] < 300 or 500 <= event["code"] < 600)
    return event["code"], event["message"], event["closes"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (answered(b'{"code":"0","msg":"Ok"}'), (0, b"Ok", False)),
        (answered(b'{ "msg" : "no" , "code" : 119 }'), (119, b"no", False)),
        (answered(b'{"code":"0","msg":"Ok"}', "200 OK", "Connection: close"), (0, b"Ok", True)),
        (answered(b'{"code":"115","msg":"groupId("x")"}'), (115, b'groupId("x")', False)),
        (answered(b'{"code":"2","msg":"Service closed"}'), (2, b"Service closed", True)),
        (answered(b'{"code":"114","msg":"full"}'), (114, b"full", True)),
        (answered(b'{"code":"2147483647","msg":"?"}'), (2147483647, b"?", True)),
        (answered(b'{"code":"21474836470","msg":"?"}'), (200, b"", True)),
        (answered(b"<html>log in</html>"), (200, b"", True)),
        (answered(b"", "302 Found", "Location: /login"), (302, b"", False)),
        (answered(b"<html>", "502 Bad Gateway", "Connection: close"), (502, b"", True)),
        (answered(b"", "413 Request Entity Too Large", "Connection: close"), (413, b"", True)),
        (answered(b'{"code":"1","msg":"x"}', "503 Busy"), (1, b"x", True)),
        (answered(b'{"code":"0","msg":"Ok"}', "500 Oops"), (500, b"", True)),
        (answered(b'{"code":"0","msg":"Ok"}', "302 Found", "Location: /login"), (302, b"", False)),
        (answered(b' \n{"code":0}', "201 Created"), (0, b"", False)),
        (answered(b'<script>x = {"code":0}</script>'), (200, b"", True)),
        (answered(b'{"code":0.5}'), (200, b"", True)),
        (answered(b'{"code":"0x73"}'), (200, b"", True)),
        (answered(b'{"code":0'), (200, b"", True)),
        (answered(b'{"code":"0","msg":"Ok"}', length=False), (0, b"Ok", True)),
        (answered(b"", "204 No Content", length=False), (204, b"", True)),
        (answered(b"half of a pa", "500 Oops", length=False), (500, b"", True)),
    ],
)
def test_the_code_decides_else_the_status(data, expected):
    assert read(data) == expected


def test_an_answer_in_chunks():
    chunks = b'17\r\n{"code":"0","msg":"Ok"}\r\n0\r\n\r\n'
    assert read(answered(chunks, "200 OK", "Transfer-Encoding: chunked", length=False)) == (0, b"Ok", False)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b'{"code":"', b'0","msg":"Ok"}'], 0),
        ([b'{"co', b'de":"115","msg":"no"}'], 115),
        ([b'{"code":"1', b'15","msg":"no"}'], 115),
        ([b'{"code":"0', b'x","msg":"no"}'], 200),
        ([bytes([byte]) for byte in b'{"code":"119","msg":"no"}'], 119),
        ([b'{"code":"119"', b"," + b" " * 9000, b'"msg":"no"}'], 119),
        ([b"{" + b" " * 9000, b'"code":"119"}'], 200),
    ],
)
def test_an_answer_in_several_chunks(pieces, expected):
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])
    code, text, _closes = read(answered(chunks, "200 OK", "Transfer-Encoding: chunked", length=False))
    assert (code, text) == (expected, b"")


def test_an_interim_answer_is_passed_over():
    feed = Feed(WIRE)
    feed.push(b"HTTP/1.1 100 Continue\r\n\r\n" + answered(b'{"code":"0","msg":"Ok"}'))
    assert [(event["kind"], event["msg_type"]) for event in feed.events] == [(3, 100), (1, 200)]


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\x05\x01abcd",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/3 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nq\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x:\r\n" * 257,
        b"GET / HTTP/1.1\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n" + b"x" * 40,
    ],
)
def test_what_is_no_answer_ends_the_connection(data):
    feed = Feed(WIRE)
    feed.push(data)
    assert feed.failed == -2
    assert feed.events == []


def test_an_answer_without_end_is_refused():
    assert WIRE.delimit(answered(b"x" * 100_000, "200 OK", length=False), 65_536)[0] == -3
    assert WIRE.delimit(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", 65_536)[0] == -3


ANSWERS = [
    answered(b'{"code":"0","msg":"Ok"}', "200 OK", "Content-Type: application/json;charset=utf-8"),
    answered(b'cb({"code":"36","msg":"no"})'),
    answered(b'17\r\n{"code":"0","msg":"Ok"}\r\n0\r\n\r\n', "200 OK", "Transfer-Encoding: chunked", length=False),
]


def test_splits_do_not_matter():
    check_splits(WIRE, b"".join(ANSWERS))


@pytest.mark.parametrize("answer", ANSWERS)
def test_truncation_asks_for_more(answer):
    check_truncation(WIRE, answer)


@pytest.mark.parametrize("answer", ANSWERS[:2])
def test_corruption_never_escapes(answer):
    check_corruption(WIRE, answer)
