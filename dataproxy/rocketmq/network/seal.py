"""TLS: whom connections trust, handshakes, and what lies between frames and the bytes that travel."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from typing import Final

from dataproxy.config.secret import Secret
from dataproxy.errors import ConfigError, RemoteProtocolError, TransportError
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.rocketmq.arguments import TlsOptions
from dataproxy.trust.context import ssl_context
from dataproxy.trust.faults import fault_of
from dataproxy.trust.files import TlsFiles

__all__ = ["Seal", "Trusted"]

_LOG: Final = logger("rocketmq")
_PIECE: Final = 65536
_VERIFY: Final = ("full", "chain", "none")
_ENDED: Final = "it may want a client certificate that it knows (tls_certificate), or speak no TLS (rocketmq://)"


class Seal:
    """TLS of one connection.  Any thread; its lock is never held while something waits."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._lock = threading.RLock()

    def shake_hands(self, made: socket.socket, seconds: float) -> None:
        """Bring a new connection to where frames can travel.  Raises OSError (ssl.SSLError is one), TransportError."""
        until = time.monotonic() + seconds
        while True:
            made.settimeout(max(0.001, until - time.monotonic()))
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                made.sendall(self._outgoing.read())
            except ssl.SSLError:
                made.sendall(self._outgoing.read())  # why: the server may log it
                raise
            else:
                made.sendall(self._outgoing.read())
                return
            if time.monotonic() >= until:
                raise TimeoutError("no answer in time")
            piece = made.recv(_PIECE)
            if not piece:
                raise TransportError("the server has ended it in the handshake", code="TLS", hint=_ENDED)
            self._incoming.write(piece)

    def seal(self, plain: bytes) -> bytes:
        """Return what travels for these bytes.  Raises OSError."""
        with self._lock:
            self._tls.write(plain)
            return self._outgoing.read()

    def open(self, data: bytes) -> bytes | None:
        """Return the bytes that are in what has come; None: the server has ended it.  Raises RemoteProtocolError."""
        found = bytearray()
        with self._lock:
            self._incoming.write(data)
            try:
                while piece := self._tls.read(_PIECE):
                    found += piece
            except ssl.SSLWantReadError:
                return bytes(found)
            except ssl.SSLError as error:
                raise RemoteProtocolError(f"TLS: {error.reason or error}") from None
        return bytes(found) or None


class Trusted:
    """Whom the connections of a client trust, and who it is.  Files that change count from the next connection on.

    Raises ConfigError.
    """

    def __init__(self, options: TlsOptions) -> None:
        for name, value in zip(options._fields, options, strict=True):
            if not isinstance(value, str):
                raise ConfigError(f"tls_{name}={shown(value)} is not a text")
        if options.verify not in _VERIFY:
            raise ConfigError(f"tls_verify={shown(options.verify)} is not one of {', '.join(map(repr, _VERIFY))}")
        self._files = TlsFiles(
            certificate=options.certificate, key=options.key, password=Secret(options.key_password),
            authorities=options.ca, chain=options.verify != "none", host=options.verify == "full",
        )  # fmt: skip
        self._state = self._files.signature()
        self._context = ssl_context(self._files)

    def shake_hands(self, made: socket.socket, host: str, seconds: float) -> Seal:
        """Return the TLS of a new connection.  Raises OSError, TransportError: a handshake that has failed."""
        self._look()
        try:
            seal = Seal(self._context, host)
            seal.shake_hands(made, seconds)
        except ssl.SSLError as error:
            code, reason, hint = fault_of(error, "tls_ca", "rocketmq://")
            if code == "TLS_PLAIN":
                hint = "write rocketmq:// in target, or check the port"
            raise TransportError(f"the handshake has failed: {reason}", code=code, hint=hint) from None
        except ValueError as error:
            raise TransportError(f"{host!r} is no name for TLS: {error}", code="TLS_WRONG_HOST") from None
        return seal

    def _look(self) -> None:
        """Take files that were renewed; those that cannot be used are left aside until they change again."""
        state = self._files.signature()
        if state != self._state:
            self._state = state
            try:
                self._context = ssl_context(self._files)
            except ConfigError as error:
                _LOG.warning("the renewed files are not used: %s", error)
