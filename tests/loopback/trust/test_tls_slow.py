"""Servers that do not answer a TLS handshake: they are named long before ``connect_timeout``, which alone ends it."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import dataproxy
from dataproxy.errors import DeliveryExpired
from dataproxy.hub import Hub
from tests.loopback.trust.test_tls_proxies import producer
from tests.support.certificates import Authority
from tests.support.tlsserver import tls_front
from tests.support.waiting import eventually

SECONDS = 30.0
LONG = {"connect_timeout": 500.0, "delivery_timeout": 2000.0}  # nothing here waits for its end
BEGUN = b"\x16\x03\x03"  # a record of a handshake, of which the length would follow


@contextmanager
def saying(words: bytes) -> Iterator[int]:
    """Run a server that says this to whoever comes, and nothing else."""
    end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(words)
                end.wait(SECONDS)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            end.set()
            thread.join(SECONDS)


def state(opened: dataproxy.Producer) -> str:
    """Return the state of a producer's only connection."""
    (one,) = opened.stats().connections
    return one.state


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (b"", "TLS_PLAIN", "it has not answered the TLS handshake yet: if it does not speak TLS, write tcp://"),
        (BEGUN, "TLS", "it has begun to answer the TLS handshake, and has not ended it yet"),
    ],
)
def test_a_server_that_does_not_answer(
    authority: Authority, caplog: pytest.LogCaptureFixture, words: bytes, code: str, text: str
) -> None:
    caplog.set_level(logging.WARNING, "dataproxy.conn")
    with saying(words) as port:
        opened = producer(port, authority, connections=1, **LONG)
        delivery = opened.send("s", b"x")
        assert eventually(lambda: opened.stats().last_error is not None)
        last = opened.stats().last_error
        assert last is not None
        assert (last.address, last.code, last.connected) == (f"127.0.0.1:{port}", code, False)
        assert last.reason.startswith(text)
        assert state(opened) == "connecting"  # the attempt goes on
        assert eventually(lambda: f"the connection to 127.0.0.1:{port} is not ready: {text}" in caplog.text)
        assert not delivery.done()
        opened.close(0)


def test_the_result_of_a_message_names_it(authority: Authority) -> None:
    with saying(b"") as port:
        opened = producer(port, authority, connections=1, connect_timeout=500.0, delivery_timeout=2.5)
        delivery = opened.send("s", b"x")
        with pytest.raises(DeliveryExpired, match="it has not answered the TLS handshake yet"):
            delivery.result(SECONDS)
        opened.close()


def test_a_slow_server_is_waited_for(hub: Hub, authority: Authority) -> None:
    with tls_front(hub.port, authority.identity()) as front:
        front.ready.clear()
        with producer(front.port, authority, connections=1, **LONG) as opened:
            delivery = opened.send("s", b"x")
            assert eventually(lambda: opened.stats().last_error is not None)
            front.ready.set()
            assert delivery.result(SECONDS)
            last = opened.stats().last_error
            assert last is not None
            assert last.connected
        assert len(front.versions) == 1  # by the first connection
