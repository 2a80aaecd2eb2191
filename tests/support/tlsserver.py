"""A proxy behind Python's own ``ssl``: what a producer sends over TLS is answered as a script says."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.certificates import Identity

__all__ = ["TlsFront", "tls_front"]


class TlsFront:
    """Take TLS off connections and hand the bytes to a plain server, as a TLS proxy in front of a DataProxy does."""

    def __init__(self, behind: int, context: ssl.SSLContext) -> None:
        self._behind = behind
        self.context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.resumed: list[bool] = []
        self.versions: list[str | None] = []
        self.names: list[str | None] = []
        self.failures: list[str] = []
        self.on_peer: Callable[[Any], object] = lambda _certificate: None  # called with each client's certificate
        self.ready = threading.Event()  # cleared: nobody's handshake is answered
        self.ready.set()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(peer,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        self.ready.wait()
        try:
            secure = self.context.wrap_socket(peer, server_side=True)
        except OSError as error:
            self.failures.append(getattr(error, "reason", None) or str(error))
            peer.close()
            return
        self.resumed.append(bool(secure.session_reused))
        self.versions.append(secure.version())
        certificate = secure.getpeercert()
        if certificate:
            self.on_peer(certificate)
        with socket.create_connection(("127.0.0.1", self._behind)) as plain, secure:
            self._open += [secure, plain]
            with contextlib.suppress(OSError, ValueError):  # either side may be cut at any time
                _relay(secure, plain)

    def cut(self) -> None:
        """End every open connection."""
        for one in self._open:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)
        self._open.clear()

    def close(self) -> None:
        """End the server and its connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.ready.set()
        self.cut()
        for thread in self._threads:
            thread.join(10.0)


def _relay(secure: ssl.SSLSocket, plain: socket.socket) -> None:
    """Carry bytes both ways until one side ends, on one thread: an ``SSLSocket`` is for one thread at a time."""
    with selectors.DefaultSelector() as watched:  # not `select`, which takes no descriptor over 1,023
        watched.register(secure, selectors.EVENT_READ)
        watched.register(plain, selectors.EVENT_READ)
        while _carry(secure, plain, {key.fileobj for key, _ in watched.select()}):
            pass


def _carry(secure: ssl.SSLSocket, plain: socket.socket, ready: set[Any]) -> bool:
    """Carry what is there; False when a side has ended."""
    if secure in ready:
        data = secure.recv(65536)
        while secure.pending():
            data += secure.recv(65536)
        if not data:
            return False
        plain.sendall(data)
    if plain in ready:
        data = plain.recv(65536)
        if not data:
            return False
        secure.sendall(data)
    return True


@contextmanager
def tls_front(
    behind: int,
    identity: Identity,
    *,
    client_ca: Path | None = None,
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
) -> Iterator[TlsFront]:
    """Run a TlsFront before a port of this machine; with ``client_ca`` clients need a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = oldest, newest
    context.load_cert_chain(identity.certificate, identity.key)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    front = TlsFront(behind, context)
    context.sni_callback = lambda _socket, name, _context: front.names.append(name)
    try:
        yield front
    finally:
        front.close()
