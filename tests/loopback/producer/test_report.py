"""A producer over HTTP: the same laws, whatever stands between it and the store."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dataproxy import AsyncProducer, Producer
from dataproxy.errors import ConfigError, DeliveryError, DiscoveryError, InvalidMessageError
from dataproxy.hub import Hub
from tests.loopback.hub.peer import wait_until
from tests.support.reference import report

FAST = {"retry_backoff": "5ms", "retry_backoff_max": "50ms", "reconnect_backoff": "5ms", "delivery_timeout": "30s"}


def stored(hub: Hub, stream: str = "s") -> list[bytes]:
    return [line for record in hub.records("g", stream) for line in record.body.split(b"\n")]


def sender(target: str, **options: object) -> Producer:
    return Producer(target, group_id="g", protocol="http", **{**FAST, **options})


@contextlib.contextmanager
def failing(target: str, **options: object) -> Iterator[Producer]:
    """Give a producer whose messages fail; its end does not complain of them."""
    producer = sender(target, **options)
    try:
        yield producer
    finally:
        producer.close()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(nodes=2) as one:
        yield one


def balanced(producer: Producer) -> bool:
    found = producer.stats()
    return found.accepted == found.delivered + found.failed + found.expired + found.dropped + found.pending


def test_messages_arrive_as_lines_of_one_record(hub):
    with sender(hub.http_target) as producer:
        bodies = [f"{i} ä&=+%\t".encode() for i in range(5000)]
        producer.send_batch("s", bodies).result(30)
        result = producer.send("s", b"last").result(30)
        assert result.node in {node.http.address for node in hub.nodes}
        assert sorted(stored(hub)) == sorted([*bodies, b"last"])
        assert producer.stats().delivered == 5001
        assert balanced(producer)
    record = next(hub.records("g", "s"))
    assert record.body.count(b"\n") + 1 == int(record.attrs["cnt"])
    assert hub.stats()["frames"] < 100


@pytest.mark.parametrize("body", [b"", b"two\nlines", b" \t", b"\xff\xfe", b"\xed\xa0\x80", b"x" * 200_000])
@pytest.mark.parametrize("way", ["send", "batch", "nowait"])
def test_what_no_line_of_text_can_hold_is_refused_before_it_is_accepted(hub, body, way):
    with sender(hub.http_target) as producer:
        calls: dict[str, Callable[[], object]] = {
            "send": lambda: producer.send("s", body),
            "batch": lambda: producer.send_batch("s", [b"good", body]),
            "nowait": lambda: producer.send_nowait("s", body),
        }
        with pytest.raises(InvalidMessageError):
            calls[way]()
        assert producer.stats().accepted == 0


def test_what_does_not_fit_together_is_told(hub):
    for options, words in [
        ({"message_type": 7}, "message_type 7 cannot be sent over HTTP"),
        ({"message_type": 5}, "message_type 5 cannot be sent over HTTP"),
        ({"compression": "snappy"}, "compression has no place"),
        ({"exact_time": True}, "protocol 'http' has no attributes of single messages.* choose protocol='tcp'"),
        ({"message_type": 2}, "message_type 2 cannot be sent over HTTP"),
        ({"joined_lines": True}, "joined_lines is of message_type 7, and protocol 'http' has no message types"),
        ({"trace_address": "10.0.0.1"}, "trace_address has no place in the HTTP report"),
        ({"ack": "none"}, "ack 'none' cannot be asked for with protocol 'http', whose server answers each request"),
        ({"ack": "sink"}, "ack 'sink' cannot be asked for with protocol 'http'.* leave ack out"),
    ]:
        with pytest.raises(ConfigError, match=words):
            sender(hub.http_target, **options)
    for target, bare in (
        ("tcp://h", "h"), (" TCP://h\n", "h"), ("tls://h1:443, h2", "h2"), ("dns://h", "h"),
        ("tcp://[::1]", r"\[::1\]"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=f"target has '{bare}' without a port.* write '{bare}:46802'"):
            sender(target)
    with sender(hub.http_target) as producer:
        assert producer.config.message_type == 3
        with pytest.raises(InvalidMessageError, match="no attributes"):
            producer.stream("s", attrs={"a": "b"})
        with pytest.raises(InvalidMessageError, match="no attributes"):
            producer.send("s", b"x", attrs={"a": "b"})


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("tcp://user:s3cret@h", "contains '@'"),
        ("tcp://h?key=s3cret", "holds '?'"),
        ("tcp://h:1,", "has an empty address"),
        ("tcp://h1:1,tcp://h2", "repeats 'tcp://'"),
        ("dns://h/x", "'h/x' is not a host name"),
        (f"tcp://{'h' * 300}", "is not a host name"),
    ],
)
def test_what_is_no_address_is_told_as_over_tcp(target, words):
    with pytest.raises(ConfigError) as caught:
        sender(target)
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "46802" not in str(caught.value)


def test_proxies_come_from_the_manager(hub):
    with sender(hub.manager_url) as producer:
        assert producer.send("s", b"x").result(30).node in {node.http.address for node in hub.nodes}
    with Hub(http_port=-1) as bare, pytest.raises(DiscoveryError, match="no HTTP proxy"):
        sender(bare.manager_url)


def test_one_request_at_a_time_on_a_connection(hub):
    target = hub.nodes[0].http.target
    with sender(target, linger=0, batch_messages=1, connections=1, executors=1) as producer:
        with hub.faults.add("delay", seconds=0.005, listener=hub.nodes[0].http.index):
            producer.send_batch("s", [b"%d" % i for i in range(100)]).result(30)
        assert stored(hub) == [b"%d" % i for i in range(100)]
        assert producer.stats().duplicates_possible == 0


def test_a_drained_node_is_left_for_the_other(hub):
    with sender(hub.http_target, linger=0) as producer:
        producer.send("s", b"first").result(30)
        hub.nodes[0].drain()
        for i in range(30):
            assert producer.send("s", b"%d" % i).result(30).node == hub.nodes[1].http.address
        hub.nodes[0].undrain()
    assert sorted(stored(hub)) == sorted([b"first", *(b"%d" % i for i in range(30))])


def test_a_killed_node_loses_nothing(hub):
    with sender(hub.http_target, linger="1ms") as producer:
        sent = []
        for i in range(2000):
            sent.append(b"%d" % i)
            producer.send_nowait("s", sent[-1])
            if i == 500:
                hub.nodes[0].kill()
            if i == 1500:
                hub.nodes[0].restart()
        producer.flush(30)
        assert producer.stats().delivered == 2000
        assert balanced(producer)
    assert set(stored(hub)) == set(sent)


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        ("close", {"stage": "before_store"}),
        ("close", {"stage": "after_store"}),
        ("reset", {"stage": "after_store"}),
        ("slice", {}),
        ("queue_full", {}),
        ("not_ready", {}),
        ("stopped", {}),
        ("garbage", {"data": b"\x00\x01"}),
        ("drop_reply", {}),
        ("refuse", {"code": 119, "message": "no"}),
    ],
)
def test_faults_cost_time_alone(hub, fault, options):
    with (
        sender(hub.http_target, linger=0, batch_messages=5, ack_timeout="300ms") as producer,
        hub.faults.add(fault, every=7, **options) as armed,
    ):
        sent = [b"%d" % i for i in range(300)]
        producer.send_batch("s", sent).result(30)
        assert armed.fired > 0
        assert producer.stats().delivered == 300
        assert balanced(producer)
    assert set(stored(hub)) == set(sent)


def test_a_permanent_refusal_fails_with_its_code():
    with Hub(topics=["other"]) as hub, failing(hub.http_target, unknown_group_timeout="100ms") as producer:
        with pytest.raises(DeliveryError, match=r"Topic not configured for groupId\(g\)") as failed:
            producer.send("s", b"x").result(30)
        assert failed.value.code == 115


def test_order_by_key_is_kept_through_faults(hub):
    with (
        sender(hub.http_target, ordering="key", linger=0, batch_messages=3) as producer,
        hub.faults.add("close", every=5, stage="after_store"),
        hub.faults.add("stopped", every=11),
    ):
        for i in range(200):
            producer.send("s", b"%d" % i, key=b"k%d" % (i % 3))
        producer.flush(30)
        assert producer.stats().delivered == 200
    first: dict[int, int] = {}
    for place, line in enumerate(stored(hub)):
        first.setdefault(int(line), place)
    for key in range(3):
        places = [first[i] for i in range(200) if i % 3 == key]
        assert places == sorted(places)


def test_heartbeats_keep_a_connection_and_find_a_dead_one(hub):
    with sender(hub.nodes[0].http.target, heartbeat_interval="50ms", connections=1, executors=1) as producer:
        wait_until(lambda: hub.stats()["heartbeats"] >= 3)
        assert producer.stats().connections[0].losses == 0
        with hub.faults.add("drop_reply", on="heartbeat"):
            wait_until(lambda: producer.stats().connections[0].losses >= 1)
        producer.send("s", b"x").result(30)


def test_an_event_loop_awaits_reports(hub):
    async def main() -> None:
        async with AsyncProducer(hub.http_target, group_id="g", protocol="http") as producer:
            assert (await producer.send("s", b"x")).node

    asyncio.run(main())
    assert stored(hub) == [b"x"]


class Gateway(BaseHTTPRequestHandler):
    """A server of another make: it answers as ``server.script`` says, and keeps what it got."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))  # type: ignore[attr-defined]
        script = self.server.script  # type: ignore[attr-defined]
        status, text, more = script.pop(0) if len(script) > 1 else script[0]
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        if "Transfer-Encoding" not in more:
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text))

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


OK = (200, b'{"code":"0","msg":"Ok"}', {})


@pytest.fixture
def gateway() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    server.got, server.script = [], [OK]  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def at(gateway: ThreadingHTTPServer) -> str:
    return f"tcp://127.0.0.1:{gateway.server_address[1]}"


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        (200, b'{"code":"0","msg":"Ok"}', {"Connection": "close"}),
        (200, b'{"code":"0","msg":"Ok"}', {"Transfer-Encoding": "chunked"}),
        (200, b'{"msg":"again","code":120}', {}),
    ],
)
def test_servers_of_another_make_are_understood(gateway, answer):
    gateway.script = [answer]
    with sender(at(gateway), heartbeat="off", linger=0, connections=1, executors=1) as producer:
        for i in range(20):
            producer.send("s", b"%d" % i).result(30)
    assert len(gateway.got) == 20
    headers, body = gateway.got[0]
    assert headers["Host"] == f"127.0.0.1:{gateway.server_address[1]}"
    assert headers["Content-Type"] == report.TYPE
    assert body.startswith(b"body=0&groupId=g&streamId=s&dt=")


@pytest.mark.parametrize(
    ("answer", "code", "maybe"),
    [
        ((502, b"<html>", {}), 502, True),
        ((200, b"<html>log in</html>", {}), 200, True),
        ((302, b"", {"Location": "/login"}), 302, False),
        ((403, b"no", {}), 403, False),
    ],
)
def test_answers_of_gateways_are_tried_again(gateway, answer, code, maybe):
    gateway.script = [answer, answer, OK]
    with sender(at(gateway), heartbeat="off") as producer:
        producer.send("s", b"x").result(30)
        assert producer.stats().retries == 2
        assert (producer.stats().duplicates_possible > 0) == maybe
    gateway.script = [answer]
    short = {"delivery_timeout": "400ms", "ack_timeout": "100ms"} if code == 502 else {}
    with failing(at(gateway), heartbeat="off", **short) as producer:
        with pytest.raises(DeliveryError) as failed:
            producer.send("s", b"x").result(30)
        assert failed.value.code == ("EXPIRED" if short else code)
        assert failed.value.details["maybe_delivered"] == maybe
        assert producer.stats().errors == {code: 1}


def test_a_request_that_is_too_large_fails_at_once(gateway):
    gateway.script = [(413, b"", {"Connection": "close"})]
    with failing(at(gateway), heartbeat="off") as producer:
        with pytest.raises(DeliveryError, match="413"):
            producer.send("s", b"x").result(30)
        assert producer.stats().retries == 0


def test_a_server_that_speaks_no_http_is_told(caplog):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_speak, args=(server, b"SSH-2.0-x\r\n" + b"y" * 40), daemon=True).start()
        target = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with failing(target, delivery_timeout="300ms", ack_timeout="100ms") as producer:
            with pytest.raises(DeliveryError):
                producer.send("s", b"x").result(30)
            assert balanced(producer)
    assert caplog.records


def _speak(server: socket.socket, data: bytes) -> None:
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer, contextlib.suppress(OSError):
            peer.sendall(data)
            peer.recv(1000)


def test_what_was_not_delivered_comes_back_as_it_was_sent(gateway):
    bodies = ["100 % & ä = +".encode(), b"a  b", b"plain"]
    gateway.script = [(403, b"no", {})]
    with failing(at(gateway), heartbeat="off", batch_messages=2) as producer:
        assert producer.send_batch("s", bodies).result(30).failures
        assert [message.body for message in producer.undelivered()] == bodies


def test_an_expired_request_ends_its_connection(hub):
    node = hub.nodes[0]
    with sender(node.http.target, connections=1, executors=1, linger=0, ack_timeout="2s", delivery_timeout="4s") as one:
        with hub.faults.add("drop_reply", listener=node.http.index, first=1):
            begun = time.monotonic()
            one.send("s", b"first").result(30)
            assert time.monotonic() - begun < 20
        assert one.send("s", b"second").result(30)
    assert stored(hub).count(b"second") == 1
