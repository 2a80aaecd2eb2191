"""What went wrong last with host, port and reason: in errors, in the log, in ``stats()``; and waiting for a proxy."""

import asyncio
import logging
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import dataproxy
from dataproxy.errors import LocalProtocolError
from dataproxy.hub import Hub
from dataproxy.producer import readiness
from tests.support.scripted import Scripted, good, silent
from tests.support.waiting import SECONDS, eventually


@contextmanager
def nobody() -> Iterator[str]:
    """Give an address where nobody listens, and nobody else begins to."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{sock.getsockname()[1]}"


@contextmanager
def answers(data: bytes, *, reads: int = 1) -> Iterator[str]:
    """Serve connections that answer the first bytes with ``data`` and close, once ``reads`` bytes have come."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                got = 0
                while got < reads:
                    some = peer.recv(65536)
                    if not some:
                        break
                    got += len(some)
                if data:
                    peer.sendall(data)
                else:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(SECONDS)


def producer(address: str, **options: object) -> dataproxy.Producer:
    """Open a producer for one address."""
    return dataproxy.Producer(f"tcp://{address}", **{"group_id": "g", "linger": 0.0, **options})  # type: ignore[arg-type]


REFUSED = "ECONNREFUSED, Connection refused"


@pytest.fixture(autouse=True)
def closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks end without the error of what was not delivered."""
    monkeypatch.setattr("dataproxy.producer.producer.tell_undelivered", lambda report, error: None)


def test_an_expired_message_says_who_was_not_reached_and_why() -> None:
    with nobody() as address, producer(address, delivery_timeout=1.0) as p:
        delivery = p.send("s", b"x")
        with pytest.raises(dataproxy.DeliveryExpired) as caught:
            delivery.result(SECONDS)
        kept = next(p.undelivered())
        p.close(0)
        with pytest.raises(dataproxy.UndeliveredError, match=f"{address}: {REFUSED}"):
            raise dataproxy.UndeliveredError(p.report())
    assert f"the last error was {address}: {REFUSED}" in str(caught.value)
    assert caught.value.details["cause"] == "CONNECT_FAILED"
    assert caught.value.details["last_reason"] == f"{address}: {REFUSED}"
    assert str(kept.error) == str(caught.value)


def test_waits_that_end_early_say_it() -> None:
    with nobody() as address, producer(address, close_timeout=0.0) as p:
        delivery, batch = p.send("s", b"x"), p.send_batch("s", [b"y", b"z"])
        assert eventually(lambda: p.stats().last_error)
        text = f"; the last error was {address}: {REFUSED}"
        with pytest.raises(dataproxy.DeliveryPending, match=text):
            delivery.result(0.01)
        with pytest.raises(dataproxy.DeliveryPending, match=text):
            delivery.exception(0.01)
        with pytest.raises(dataproxy.DeliveryPending, match=text):
            batch.result(0.01)
        with pytest.raises(dataproxy.FlushTimeout, match=text):
            p.flush(0.01)
        p.close(0)
        with pytest.raises(dataproxy.DeliveryFailed, match=text) as caught:
            delivery.result(0)
        assert caught.value.code == "CLOSED"


def test_statistics_have_it_and_say_when_it_is_mended() -> None:
    with nobody() as address:
        port = int(address.rpartition(":")[2])
        p = producer(address, reconnect_backoff=0.01, reconnect_backoff_max=0.05)
        assert p.report().last_error is None or p.report().last_error.code == "CONNECT_FAILED"
        assert eventually(lambda: p.stats().last_error)
        last = p.stats().last_error
        assert last is not None
        assert (last.address, last.code, last.reason, last.connected) == (address, "CONNECT_FAILED", REFUSED, False)
        assert last.seconds >= 0
        assert str(last) == f"{address}: {REFUSED}"
    with Scripted(port=port), p:
        p.wait_ready(SECONDS)
        assert eventually(lambda: p.stats().last_error.connected)  # type: ignore[union-attr]
        assert p._trouble() == ""


def test_one_warning_after_the_first_second(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_FIRST_SECONDS", 0.05)
    caplog.set_level(logging.WARNING, "dataproxy")
    with nobody() as address, producer(address, reconnect_backoff=0.01, reconnect_backoff_max=0.01) as p:
        p.send_batch("s", [b"x", b"y"])
        said = f"no proxy is connected; messages that wait: 2; the last error was {address}: {REFUSED}"
        assert eventually(lambda: said in caplog.messages)
        before = sum(connection.losses for connection in p.stats().connections)
        assert eventually(lambda: sum(connection.losses for connection in p.stats().connections) > before + 20)
        assert caplog.messages.count(said) == 1
        p.close(0)


def test_no_warning_while_nothing_waits_or_a_proxy_answers(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_FIRST_SECONDS", 0.0)
    with nobody() as address, producer(address, reconnect_backoff=0.01, reconnect_backoff_max=0.01) as p:
        assert eventually(lambda: sum(connection.losses for connection in p.stats().connections) > 5)
    assert not [text for text in caplog.messages if "no proxy is connected;" in text]
    caplog.clear()
    with nobody() as address, Scripted(silent) as server:
        p = producer(f"{address},{server.address}", reconnect_backoff=0.01, reconnect_backoff_max=0.01)
        p.wait_ready(SECONDS)
        p.send("s", b"x")
        before = sum(connection.losses for connection in p.stats().connections)
        assert eventually(lambda: sum(connection.losses for connection in p.stats().connections) > before + 5)
        assert not [text for text in caplog.messages if "no proxy is connected;" in text]
        p.close(0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            "it answered in HTTP: this is the port of a web server",
        ),
        (b"\x15\x03\x01\x00\x02\x02\x46", "it answered in TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it sent bytes that are not a reply"),
    ],
    ids=["http", "tls", "ssh"],
)
def test_a_port_of_another_protocol_is_told_as_such(data: bytes, words: str, caplog: pytest.LogCaptureFixture) -> None:
    with answers(data) as address, producer(address, delivery_timeout=2.0, reconnect_backoff_max=0.1) as p:
        caught = p.send("s", b"x").exception(SECONDS)
        p.close(0)
    assert caught is not None
    assert f"{address}: {words}" in str(caught)
    assert words in caplog.text or data.startswith(b"SSH")


def test_a_broken_answer_to_the_http_report_is_not_that_of_another_protocol() -> None:
    broken = b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"
    with answers(broken) as address:
        p = producer(address, protocol="http", delivery_timeout=2.0, reconnect_backoff_max=0.1)
        caught = p.send("s", b"x").exception(SECONDS)
        p.close(0)
    assert f"{address}: it sent bytes that are not a reply" in str(caught)


def test_a_frame_over_the_servers_limit_is_told_as_such() -> None:
    with answers(b"", reads=100_000) as address:
        p = producer(address, delivery_timeout=2.0, reconnect_backoff_max=0.1, compression="none")
        caught = p.send("s", bytes(300_000)).exception(SECONDS)
        p.close(0)
    assert caught is not None
    assert "while a frame of 300" in str(caught)
    assert "max-msg-length" in str(caught)
    assert caught.hint is not None
    for option in ("max_frame_bytes", "batch_bytes", "max-msg-length", "doctor"):
        assert option in caught.hint
    assert "reachable" not in str(caught)  # it is reached; that is not what is wrong
    assert caught.details["cause"] in ("CONNECTION_LOST", "EXPIRED")


@pytest.mark.parametrize("messages", [1, 3000])
def test_a_hub_with_a_small_limit_plays_such_a_server(messages: int) -> None:
    """It closes the connection without a byte, as a DataProxy does; smaller frames pass."""
    with Hub(max_frame_bytes=65_536) as hub:
        p = producer(hub.target.removeprefix("tcp://"), delivery_timeout=2.0, reconnect_backoff_max=0.1, linger=0.2)
        large = p.send_batch("s", [bytes(100_000 // messages) + b"x"] * messages * 2)
        assert p.send("other", b"small").result(SECONDS)
        failures = large.result(SECONDS).failures
        p.close(0)
        assert hub.counts()["g", "other"].records == 1
    for failure in failures:
        assert "max-msg-length" in failure.error.hint
        assert "reachable" not in str(failure.error)
    assert sum(failure.messages for failure in failures) == messages * 2


def test_waiting_for_a_proxy() -> None:
    with Scripted(good) as server, producer(server.address) as p:
        p.wait_ready()
        p.wait_ready(0)
        with pytest.raises(dataproxy.ConfigError):
            p.wait_ready(-1)
    with pytest.raises(dataproxy.ClosedError):
        p.wait_ready()


def test_nobody_to_wait_for() -> None:
    with nobody() as address, producer(address) as p:
        assert eventually(lambda: p.stats().last_error)
        with pytest.raises(dataproxy.TransportError, match=f"no proxy was reached within 0 s; .*{REFUSED}") as caught:
            p.wait_ready(0)
        assert caught.value.code == "CONNECT_FAILED"
        assert caught.value.details == {"address": address, "cause": "CONNECT_FAILED", "reason": REFUSED}


def test_a_callback_may_not_wait() -> None:
    told: list[BaseException] = []

    def heard(_result: object) -> None:
        try:
            p.wait_ready()
        except LocalProtocolError as error:
            told.append(error)

    with Scripted(good) as server, producer(server.address, on_delivery=heard) as p:
        p.send("s", b"x")
        p.flush(SECONDS)
    assert len(told) == 1


def test_a_constructor_that_checks() -> None:
    with Scripted(good) as server, producer(server.address, start="connect") as p:
        assert any(connection.state == "active" for connection in p.stats().connections)
    before = threading.active_count()
    with nobody() as address, pytest.raises(dataproxy.TransportError, match=REFUSED):
        producer(address, start="connect", connect_timeout=0.05)
    assert threading.active_count() <= before


def test_in_an_event_loop() -> None:
    async def use(address: str, *, there: bool) -> None:
        p = dataproxy.AsyncProducer(f"tcp://{address}", group_id="g", connect_timeout=0.05)
        if there:
            await p.wait_ready()
        else:
            with pytest.raises(dataproxy.TransportError, match=REFUSED):
                await p.wait_ready(0.5)
            waiting = asyncio.create_task(p.wait_ready(SECONDS))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await p.close()

    with Scripted(good) as server:
        asyncio.run(use(server.address, there=True))
    with nobody() as address:
        asyncio.run(use(address, there=False))
