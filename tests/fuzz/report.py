"""Fuzz target: HTTP reports as the server role judges them, and answers as the client role reads them.

Whatever comes is answered in whole and readable; well-formed requests are compared with the plain-Python server.
"""

from dataproxy._core.wire.inlong import message
from dataproxy.numbers import FAMILY_REPORT
from tests.fuzz.engine import main
from tests.native.probe_wire import ProbeError, Server, Wire
from tests.support.reference import report
from tests.support.reference.vectors import NOW_MS, VECTORS

__all__ = ["SEEDS", "check"]

WIRE = Wire("http")
STRICT = Server(wire="http", max_frame=65_536)
COMPAT = Server(wire="http", compat=True, compress_entries=False)
FORM = {"Content-Type": report.TYPE}
SEEDS = [
    *(report.build(one["method"], one["target"], one["body"].encode(), one["headers"]) for one in VECTORS["http"]),
    b"POST /dataproxy/message HTTP/1.1\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"a\r\ngroupId=g&\r\n10\r\nstreamId=s&body=\r\n3\r\n%%41\r\n0\r\nx: y\r\n\r\n" % report.TYPE.encode(),
    WIRE.frame(b"a\n\xff b", b"groupId=g&streamId=s", family=FAMILY_REPORT, items=2, count=2),
    WIRE.heartbeat(8, NOW_MS),
    b'HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{"code":"0","msg":"Ok"}',
    b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"code":"114","msg":"x"y"}',
    b"HTTP/1.1 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
]


def check(data: bytes) -> None:
    """Judge bytes as a request in both profiles, with a form of their own, and read them as an answer."""
    _judge(data)
    _judge(report.build("POST", "/dataproxy/message?groupId=g&streamId=s", b"body=x&" + data, FORM))
    _read(data)
    _read(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)


def _judge(data: bytes) -> None:
    status, size = WIRE.delimit(data, 65_536)
    if status != 0 or data[:5] == b"HTTP/":
        return
    for server in (STRICT, COMPAT):
        outcome = server.serve(data[:size], NOW_MS)
        assert outcome["action"] in ("store", "reply")
        if outcome["reply"]:
            _check_answer(server, outcome)
        if outcome["action"] == "store":
            assert len(list(message.records(outcome["entry"]))) == 1
    _compare(data[:size])


def _check_answer(server: Server, outcome: dict) -> None:
    reply = outcome["reply"]
    assert WIRE.delimit(reply, 1 << 20) == (0, len(reply))
    event = WIRE.parse_reply(reply)
    if reply.partition(b"\r\n\r\n")[2].lstrip().startswith(b"<"):  # a callback that makes a page of the answer
        return
    assert event["code"] == (outcome["code"] or (413 if reply.startswith(b"HTTP/1.1 413") else 0))
    assert event["closes"] or not outcome["closes"]
    if outcome["action"] == "store":
        assert WIRE.parse_reply(server.refuse(reply, 114, b"full"))["code"] == 114


def _compare(data: bytes) -> None:
    """Compare with the plain-Python server, if it understands the request."""
    head, _, body = data.partition(b"\r\n\r\n")
    form = b"POST /dataproxy/message?groupId=g&streamId=s HTTP/1.1\r\nHost: hub\r\n"
    if head != form + b"Content-Type: %s\r\nContent-Length: %d" % (report.TYPE.encode(), len(body)):
        return
    try:
        expected = report.judge(data, NOW_MS)
    except UnicodeDecodeError:  # names that are no text
        return
    outcome = STRICT.serve(data, NOW_MS)
    assert (outcome["code"], outcome["closes"]) == (expected.code, expected.closes)
    if expected.record:
        assert [record for record, _ in message.records(outcome["entry"])] == [expected.record]


def _read(data: bytes) -> None:
    rest = data
    while True:
        status, size = WIRE.delimit(rest, 65_536)
        if status != 0 or size == 0:
            return
        try:
            event = WIRE.parse_reply(rest[:size])
            assert event["message"] in rest[:size]
        except ProbeError:
            return
        rest = rest[size:]


if __name__ == "__main__":
    main(check, SEEDS)
