"""HTTP report, server role: golden vectors, the plain-Python server, and what comes instead of requests."""

from __future__ import annotations

import random

import pytest

from dataproxy._core.wire.inlong import message
from tests.native.probe_wire import Server, Wire
from tests.support.reference import report
from tests.support.reference.vectors import NOW_MS, VECTORS, named

WIRE = Wire("http")
FORM = {"Content-Type": report.TYPE}
PLAIN = "/dataproxy/message?groupId=g&streamId=s&body=x"


def serve(data: bytes, **profile: object) -> dict:
    assert WIRE.delimit(data) == (0, len(data))
    return Server(wire="http", **profile).serve(data, NOW_MS)


def request_of(vector: dict) -> bytes:
    return report.build(vector["method"], vector["target"], vector["body"].encode(), vector["headers"])


def stored(outcome: dict) -> list[tuple[bytes, dict[str, str]]]:
    return [(record, group.attrs) for group in message.decode(outcome["entry"]).groups for record in group.records]


@pytest.mark.parametrize("vector", named("http"))
def test_compat_answers_like_the_reference_server(vector):
    outcome = serve(request_of(vector), compat=True, groups={b"test_group"})
    first, headers, body = report.split(outcome["reply"])
    assert first == "HTTP/1.1 200 OK"
    assert headers["content-type"] == "application/json;charset=utf-8"
    assert body.decode() == vector["reply_body"]
    assert outcome["closes"] == vector["server_closes"]
    assert headers.get("connection") == ("close" if vector["server_closes"] else None)
    assert outcome["code"] == WIRE.parse_reply(outcome["reply"])["code"]
    assert (outcome["action"] == "store") == (outcome["code"] == 0 and vector["name"] != "heartbeat")


@pytest.mark.parametrize("vector", named("http"))
def test_strict_is_the_same_but_takes_parameters_of_the_content_type(vector):
    outcome = serve(request_of(vector), groups={b"test_group"})
    if vector["name"] == "content_type_with_charset":
        assert (outcome["action"], outcome["code"]) == ("store", 0)
        return
    assert report.split(outcome["reply"])[2].decode() == vector["reply_body"]
    assert outcome["closes"] == vector["server_closes"]


def test_the_vectors_are_complete():
    assert len(VECTORS["http"]) == 14


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("compat", [False, True])
def test_one_request_is_one_record_whatever_its_count_says(compat, compress):
    data = report.build("POST", "/dataproxy/message", b"groupId=g&streamId=s&dt=5&body=a%0Ab&cnt=2", FORM)
    outcome = serve(data, compat=compat, compress_entries=compress, peer=b"10.1.2.3")
    assert (outcome["records"], outcome["data_time_ms"]) == (1, 5)
    assert outcome["entry"][:2] == b"\x0f\x01" == outcome["entry"][-2:]
    names = ["groupId", "streamId", "dt", "clientIp", "cnt", "rt", "rtms"]
    values = ["g", "s", "5", "10.1.2.3", "2", str(NOW_MS), str(NOW_MS)]
    ((record, attrs),) = stored(outcome)
    assert record == b"a\nb"
    assert list(attrs.items()) == list(zip(names, values, strict=True))


REQUESTS = [
    report.build("GET", PLAIN),
    report.build("GET", PLAIN + "&callback=cb.x_$1&auditVersion=-7&dt=x&cnt=-3"),
    report.build("GET", PLAIN + "&callback=alert(1)//"),
    report.build("GET", "/dataproxy/message?groupId=g%26x&streamId=s&body=x"),
    report.build("GET", "/dataproxy/message?groupId=%09&streamId=s&body=x"),
    report.build("GET", "/dataproxy/message?groupId=g&streamId=s&body=%"),
    report.build("GET", "/dataproxy/message?groupId=g&streamId=s&body=%c3%28%00%ff"),
    report.build("POST", "/dataproxy/message?groupId=old&body=old", b"groupId=g&streamId=s&body=new&body=newer", FORM),
    report.build("POST", PLAIN, b"body=ignored", {}),
    report.build("POST", PLAIN, b"body=y", {"content-type": f"{report.TYPE.upper()} ; charset=UTF-8"}),
    report.build("POST", PLAIN, b"body=y", {"Content-Type": "text/plain"}),
    report.build("GET", PLAIN, headers={"Content-Type": "text/plain"}),
    report.build("GET", "/dataproxy/heartbeat", headers={"Connection": "close"}),
    report.build("GET", "/favicon.ico"),
    report.build("DELETE", PLAIN),
    report.build("GET", "/dataproxy/message?groupId=g&streamId=%22%5c&body=&&=&x"),
    report.build("GET", "/dataproxy/message?groupId=g&streamId=s&body=x&dt=9223372036854775808&cnt=1e3"),
]


@pytest.mark.parametrize("service", [0, 1, 2])
@pytest.mark.parametrize("data", REQUESTS)
def test_strict_agrees_with_the_plain_python_server(data, service):
    expected = report.judge(data, NOW_MS, service=service)
    outcome = serve(data, service_code=service)
    assert report.answer_text(outcome["reply"]) == (expected.code, expected.text, expected.callback)
    assert (outcome["code"], outcome["closes"]) == (expected.code, expected.closes)
    if expected.record:
        assert stored(outcome) == [(expected.record, expected.attrs)]
    else:
        assert outcome["action"] == "reply"


def test_random_bodies_come_back():
    rng = random.Random(17)
    for _ in range(200):
        body = rng.randbytes(rng.randint(1, 300)) + b"x"
        plain = [one < 128 and chr(one).isalnum() and rng.random() < 0.5 for one in body]
        text = "".join(chr(one) if bare else f"%{one:02x}" for one, bare in zip(body, plain, strict=True))
        data = report.build("POST", "/dataproxy/message", f"body={text}&streamId=s&groupId=g".encode(), FORM)
        assert stored(serve(data))[0][0] == body
        expected = body.decode("utf-8", "replace") if body.isascii() else None
        if expected is not None:
            assert stored(serve(data, compat=True))[0][0].decode() == expected


def test_compat_stores_text_where_strict_keeps_bytes():
    data = report.build("GET", "/dataproxy/message?groupId=g&streamId=s&body=a%ff%c3%a4%f0%9f%98%80")
    assert stored(serve(data))[0][0] == b"a\xff\xc3\xa4\xf0\x9f\x98\x80"
    assert stored(serve(data, compat=True))[0][0].decode() == "a\ufffdä😀"


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("names", ["groupId=%ff%fe&streamId=s", "groupId=g&streamId=a%c3"])
def test_names_that_are_no_text_are_no_topic(names, compat):
    outcome = serve(report.build("GET", f"/dataproxy/message?{names}&body=x"), compat=compat)
    code, text, _ = report.answer_text(outcome["reply"])
    assert (code, outcome["action"]) == (115, "reply")
    assert "\ufffd" in text


def test_compat_leaves_quotes_in_texts_and_never_answers_for_the_icon():
    data = report.build("GET", "/dataproxy/message?groupId=%22no%22&streamId=s&body=x")
    body = report.split(serve(data, compat=True, groups=set())["reply"])[2]
    assert body == b'{"code":"115","msg":"Topic not configured for groupId("no"),streamId(,s)"}'
    assert WIRE.parse_reply(serve(data, compat=True, groups=set())["reply"])["message"].endswith(b"(,s)")
    _, text, _ = report.answer_text(serve(data, groups=set())["reply"])
    assert text == 'Topic not configured for groupId("no"),streamId(,s)'
    icon = serve(report.build("GET", "/favicon.ico"), compat=True)
    assert (icon["action"], icon["reply"], icon["closes"]) == ("reply", b"", False)


def test_any_code_of_a_fault_is_answered():
    outcome = serve(report.build("GET", PLAIN), service_code=119)
    assert report.answer_text(outcome["reply"]) == (119, "", "")
    assert serve(report.build("GET", "/dataproxy/heartbeat"), service_code=119)["code"] == 0


@pytest.mark.parametrize("callback", ["", "cb"])
@pytest.mark.parametrize("close", [False, True])
def test_a_success_becomes_a_refusal(callback, close):
    data = report.build("GET", f"{PLAIN}&callback={callback}", headers={"Connection": "close"} if close else {})
    server = Server(wire="http")
    reply = server.serve(data, NOW_MS)["reply"]
    refused = server.refuse(reply, 114, b'no "room"')
    assert report.answer_text(refused) == (114, 'no "room"', callback)
    assert (b"Connection: close" in refused) == close
    assert server.tell_known(reply, 1, 2, 3) == reply


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\x10\x07" + bytes(16),
        bytes.fromhex("16030100c8010000c4030300"),
        b"GET\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET /a\x01b HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\r\n b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1025,
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"x:\r\n" * 257,
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"A" * 40,
        b"GET / HTTP/1.1\r\n" + b"x:\r\n" * 257,
        b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000,
    ],
)
def test_what_is_no_request_gets_an_answer_and_the_end(data):
    assert WIRE.delimit(data)[0] == 0
    outcome = Server(wire="http").serve(data, NOW_MS)
    assert report.answer_text(outcome["reply"]) == (31, "Decode request failure", "")
    assert outcome["closes"]


@pytest.mark.parametrize(
    "data",
    [
        report.build("POST", PLAIN, b"x" * 5000, FORM),
        report.build("POST", PLAIN, b"x" * 5000, FORM)[:200],
        b"POST / HTTP/1.1\r\nContent-Length: 999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    ],
)
def test_what_is_too_large_is_refused_before_it_is_there(data):
    assert WIRE.delimit(data, 4096) == (0, len(data))
    outcome = Server(wire="http", max_frame=4096).serve(data, NOW_MS)
    assert outcome["reply"].startswith(b"HTTP/1.1 413 ")
    assert outcome["closes"]
    assert outcome["action"] == "reply"


def test_a_body_in_chunks_is_put_together():
    head = b"POST /dataproxy/message HTTP/1.1\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"7;x=y\r\nbody=ab\r\n2\r\n%6\r\nd\r\n3&groupId=g&s\r\nA \r\ntreamId=s1\r\n0\r\nTrailer: 1\r\n\r\n"
    outcome = serve(head % report.TYPE.encode() + chunks)
    assert stored(outcome)[0][0] == b"abc"
    assert outcome["stream"] == b"s1"


@pytest.mark.parametrize("data", REQUESTS[:8])
def test_requests_are_found_in_any_pieces(data):
    for n in range(len(data)):
        status, size = WIRE.delimit(data[:n])
        assert status == 1
        assert size in (0, len(data))
    assert WIRE.delimit(data + data) == (0, len(data))
    assert WIRE.delimit(b"\r\n" + data)[0] == 0
