"""Calls to brokers: several may be under way, and an answer is waited for by its number."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from dataproxy._core.consumer.core import ConsumerCore
from dataproxy.consumer.driver import call_fault_text
from dataproxy.errors import ClosedError, RemoteProtocolError, TransportError
from dataproxy.masters.target import parse_target
from dataproxy.process.threads import join, start_quiet
from dataproxy.shown import foreign
from dataproxy.trust.files import server_trust
from dataproxy.wire.tubemq.calls import METHODS
from dataproxy.wire.tubemq.reading import read_message

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig
    from dataproxy.consumer.group.asking import Address

__all__ = ["Calls", "Prepared", "broken_answer"]

_READ_SERVICE: Final = 2
_BY_NAME: Final = {one.request: one for one in METHODS.values()}
_SLICE_S: Final = 0.1  # between two looks for signals
_JOIN_S: Final = 5.0
_LEAST_MEMORY: Final = 1 << 20  # of packs that the loop would read ahead, which it does not do here


class Prepared(NamedTuple):
    """A request as bytes, and the name of its message."""

    name: str
    data: bytes


class Calls:
    """Make calls to brokers over one connection to each.

    An answer comes within ``call_timeout`` of the configuration, or its absence is told; brokers work off the calls of
    a connection in order.  One thread.  Raises ConfigError for files of TLS that cannot be used.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        target = parse_target(config.target, config.tls)
        self._trust = server_trust(config) if target.tls else None
        self._name, self._seconds = config.tls_server_name, config.call_timeout
        self._core = ConsumerCore(
            b"-", b"-", call=config.call_timeout, connect=config.connect_timeout, confirm=config.confirm_timeout,
            nothing=config.not_found_wait, prefetch_bytes=_LEAST_MEMORY,
            tls=None if self._trust is None else self._trust.contexts,
        )  # fmt: skip
        self._next = 0
        self._peers: dict[Address, tuple[str, str, int, str]] = {}
        self._waited: dict[int, tuple[str, Address]] = {}
        self._done: dict[int, tuple[str, Address, bytes | TransportError]] = {}
        self._thread = start_quiet("dataproxy-ranges", self._core.loop_body())

    def post(self, address: Address, message: Any) -> int:
        """Begin a call and return its number, to be waited for or forgotten.

        Raises TransportError for a broker without an address.
        """
        return self.post_again(address, Prepared(message.DESCRIPTOR.name, message.SerializeToString()))

    def post_again(self, address: Address, request: Prepared) -> int:
        """Begin a call whose request was written before.  Returns and raises what `post` does."""
        peer = self._peer(address)
        self._next += 1
        self._waited[self._next] = (request.name, address)
        self._core.call(self._next, peer, _READ_SERVICE, _BY_NAME[request.name].number, request.data, self._seconds)
        return self._next

    def forget(self, number: int) -> None:
        """Do not wait for a call's answer any more."""
        self._waited.pop(number, None)
        self._done.pop(number, None)

    def wait_data(self, number: int) -> bytes:
        """Return the bytes of an answer.

        Raises TransportError if there is none: no connection, no answer in time, an exception of the broker.
        """
        return self._wait(number)[2]

    def wait(self, number: int) -> Any:
        """Return the message of an answer.  Raises RemoteProtocolError for one that is broken, and TransportError."""
        name, address, data = self._wait(number)
        answer = read_message(_BY_NAME[name].answer, data)
        if answer is None:
            raise broken_answer(name, address)
        return answer

    def _wait(self, number: int) -> tuple[str, Address, bytes]:
        while number not in self._done:
            over = self._core.ended  # looked at first: what came before the end is there then
            self._take(0.0 if over else _SLICE_S)
            if over and number not in self._done:
                raise ClosedError("the calls to brokers were closed before the answer came")
        name, address, found = self._done.pop(number)
        if isinstance(found, TransportError):
            raise found
        return name, address, found

    def ask(self, address: Address, message: Any) -> Any:
        """Make a call and return the message of its answer.  Raises what `post` and `wait` raise."""
        return self.wait(self.post(address, message))

    def close(self) -> None:
        """End the connections, and the loop's thread."""
        self._core.stop()
        raised = join(self._thread, _JOIN_S)
        if self._trust is not None:
            self._trust.stop()
        if raised is not None:
            raise raised

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _peer(self, address: Address) -> tuple[str, str, int, str]:
        known = self._peers.get(address)
        if known is None:
            try:
                found = socket.getaddrinfo(address.host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                raise TransportError(
                    f"broker {address.host!r} has no address: {error}",
                    hint="the master names brokers as they are known to each other; this machine has to know them too",
                ) from None
            numeric = str(found[0][4][0]).partition("%")[0]
            label = f"{address.host}:{address.port}"
            known = self._peers[address] = (label, numeric, address.port, self._name or address.host)
        return known

    def _take(self, seconds: float) -> None:
        for kind, number, code, detail, data, trace in self._core.events(seconds):
            waited = self._waited.pop(number, None)
            if waited is None:
                continue
            name, address = waited
            if kind == "answer" and code == 0:
                self._done[number] = (name, address, data)
                continue
            if kind == "answer":
                text = foreign(f"{data.decode('utf-8', 'replace')}: {trace.decode('utf-8', 'replace')}")
            else:
                text = call_fault_text(code, detail)
                self._peers.pop(address, None)  # its name is looked up again
            error = TransportError(
                f"broker {address.host}:{address.port} does not answer {name}: {text}",
                details={"host": address.host, "port": address.port},
            )
            self._done[number] = (name, address, error)


def broken_answer(name: str, address: Address) -> RemoteProtocolError:
    """Return the error for bytes that are no answer."""
    return RemoteProtocolError(f"broker {address.host}:{address.port}: the answer to {name} is broken")
