"""RocketMQ's clients over TLS: all that they do at a hub, whom they trust, and what they say where they do not."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy._core.remoting.link import Link
from dataproxy.errors import ConfigError, DeliveryExpired, DiscoveryError, RemoteProtocolError
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer, PullConsumer, PushConsumer, TransactionProducer
from tests.support.certificates import Authority
from tests.support.rocketserver import RocketServer
from tests.support.tlsserver import TlsFront


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def front(authority: Authority) -> Iterator[tuple[RocketServer, TlsFront]]:
    """Return a server behind one that takes TLS off, whose address its routes name."""
    identity = authority.identity()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    with RocketServer({"t": 1}) as server:
        front = TlsFront(server.port, context)
        server.shown_port = front.port
        try:
            yield server, front
        finally:
            front.close()


def test_everything_at_a_hub_with_tls(authority: Authority) -> None:
    identity = authority.identity()
    with Hub(rocketmq_port=0, tls_certificate=str(identity.certificate), tls_key=str(identity.key)) as hub:
        target, tls = f"rocketmqs://127.0.0.1:{hub.rocketmq_port}", {"tls_ca": str(authority.ca)}
        seen: set[bytes] = set()
        come = threading.Event()

        def listener(messages: Any) -> None:
            seen.update(one.body for one in messages)
            if len(seen) == 302:
                come.set()

        large = bytes(range(256)) * 12_000  # more than a record of TLS, and than one read of a socket
        with TransactionProducer(target, "p", lambda _message: "commit", compress_above=0, **tls) as producer:
            for i in range(300):
                producer.send("T", b"%d" % i)
            producer.send("T", large)
            assert producer.flush(20).delivered == 301
            assert producer.send_in_transaction("T", b"transaction", lambda _: "commit").told
            with PushConsumer(target, "g", "T", listener, begin="first", **tls):
                assert come.wait(30), len(seen)
            assert large in seen and b"transaction" in seen
        with PullConsumer(target, "h", "T", begin="first", **tls) as consumer:
            assert consumer.poll(20)


def test_connections_that_end_are_made_again(front: tuple[RocketServer, TlsFront], authority: Authority) -> None:
    server, tls = front
    with Producer(f"rocketmqs://127.0.0.1:{tls.port}", "p", tls_ca=str(authority.ca), request_timeout=2) as producer:
        producer.send("t", b"1").result(20)
        tls.cut()
        assert producer.send("t", b"2").result(20).broker == "b"
        assert len(tls.versions) == 2 and set(tls.versions) == {"TLSv1.3"}


def test_a_certificate_that_changes_counts_from_the_next_connection_on(
    front: tuple[RocketServer, TlsFront], authority: Authority, tmp_path: Path
) -> None:
    server, tls = front
    mine = tmp_path / "trusted.pem"
    mine.write_bytes(Authority(tmp_path, "other").ca.read_bytes())
    with Producer(f"rocketmqs://127.0.0.1:{tls.port}", "p", tls_ca=str(mine)) as producer:
        with pytest.raises(DiscoveryError, match=r"self.signed certificate|unable to get local issuer"):
            producer.queues("t")
        mine.write_bytes(authority.ca.read_bytes() * 2)
        producer.send("t", b"x").result(20)
        mine.write_bytes(b"nothing")
        tls.cut()
        producer.send("t", b"y").result(20)


def test_clients_show_their_certificate(front: tuple[RocketServer, TlsFront], authority: Authority) -> None:
    server, tls = front
    tls.context.verify_mode = ssl.CERT_REQUIRED
    tls.context.load_verify_locations(authority.ca)
    target, ca = f"rocketmqs://127.0.0.1:{tls.port}", str(authority.ca)
    own = authority.identity("client", password="secret")
    named: list[Any] = []
    tls.on_peer = named.append
    options = {"tls_certificate": str(own.certificate), "tls_key": str(own.key), "tls_key_password": "secret"}
    with Producer(target, "p", tls_ca=ca, **options) as producer:
        producer.send("t", b"x").result(20)
    assert named
    stranger = Producer(target, "p", tls_ca=ca, delivery_timeout=1)
    with pytest.raises(DeliveryExpired, match="no name server says where"):
        stranger.send("t", b"x").result(20)
    stranger.close()


@pytest.mark.parametrize(
    ("verify", "works"), [("full", False), ("chain", True), ("none", True)], ids=["full", "chain", "none"]
)
def test_what_is_verified(authority: Authority, verify: str, works: bool) -> None:
    identity = authority.identity("elsewhere.example")
    with Hub(rocketmq_port=0, tls_certificate=str(identity.certificate), tls_key=str(identity.key)) as hub:
        target = f"rocketmqs://127.0.0.1:{hub.rocketmq_port}"
        with Producer(target, "p", tls_ca=str(authority.ca), tls_verify=verify) as producer:
            if works:
                assert producer.queues("TBW102")
            else:
                with pytest.raises(DiscoveryError, match="IP address mismatch"):
                    producer.queues("TBW102")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "has ended it in the handshake; it may want a client certificate"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(99), "WRONG_VERSION_NUMBER; write rocketmq:// in target"),
        (None, "no answer in time"),
    ],
    ids=["end", "plain", "silence"],
)
def test_a_server_without_tls_is_told(authority: Authority, answer: bytes | None, text: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def serve() -> None:
            made, _ = server.accept()
            taken.append(made)
            if answer is not None:
                made.recv(1)
                made.sendall(answer)
                made.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        target = f"rocketmqs://127.0.0.1:{server.getsockname()[1]}"
        with (
            Producer(
                target, "p", tls_ca=str(authority.ca), connect_timeout=5 if answer is not None else 0.2
            ) as producer,
            pytest.raises(DiscoveryError, match=f"no connection to 127.0.0.1.*{text}"),
        ):
            producer.queues("t")
        thread.join(20)
        taken[0].close()


class Sealed:
    """What lies between frames and bytes, played: it fails when it is told to."""

    def __init__(self) -> None:
        self.fails: BaseException | None = None
        self.found: bytes | None = b""

    def seal(self, plain: bytes) -> bytes:
        if self.fails is not None:
            raise self.fails
        return b"<" + plain + b">"

    def open(self, data: bytes) -> bytes | None:
        if self.fails is not None:
            raise self.fails
        return self.found


def test_a_link_ends_with_what_seals_it() -> None:
    for failure in (ssl.SSLError(1, "no more"), MemoryError()):
        near, far = socket.socketpair()
        near.setblocking(False)
        far.settimeout(10)
        sealed = Sealed()
        link = Link(near.detach(), sealed)
        link.call(None, 34, {}, b"body")
        assert link.flush() and far.recv(999)[:1] == b"<"
        far.sendall(b"x")
        assert link.receive() == []
        sealed.fails = failure
        link.call(None, 34, {}, b"body")
        assert link.flush() and link.unsent == 0 and link.errno == errno.EPROTO
        assert far.recv(999) == b""  # nothing that is not sealed
        assert link.receive() is None
        far.close()


def test_a_link_takes_the_end_that_its_seal_sees() -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    sealed = Sealed()
    link = Link(near.detach(), sealed)
    far.sendall(b"x")
    sealed.fails = RemoteProtocolError("TLS: by a test")
    with pytest.raises(RemoteProtocolError, match="by a test"):
        link.receive()
    sealed.fails, sealed.found = None, None
    far.sendall(b"x")
    assert link.receive() is None
    far.close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tls_ca": "/nowhere"}, "'/nowhere' cannot be read"), ({"tls_verify": "some"}, "tls_verify='some'"),
        ({"tls_ca": 3}, "tls_ca=3 is not a text"), ({"tls_certificate": "/nowhere"}, "'/nowhere' cannot be read"),
    ],
)  # fmt: skip
def test_options_of_tls_are_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Producer("rocketmqs://127.0.0.1:1", "p", **options)
    with pytest.raises(ConfigError, match="options of TLS are for TLS"):
        PullConsumer("rocketmq://127.0.0.1:1", "g", **options)
