"""A client of RocketMQ: its connections, what it knows of topics, and heartbeats."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import Final

from dataproxy._core.remoting.answers import Incoming
from dataproxy._core.remoting.link import Link
from dataproxy.errors import ClosedError, ConfigError, DataProxyError, ForkedError
from dataproxy.logs import SparingLog, logger
from dataproxy.process.threads import at_childs_end, check_native_threads, is_here
from dataproxy.rocketmq.arguments import TlsOptions, check_instance
from dataproxy.rocketmq.network.connections import Connections, answer_fault
from dataproxy.rocketmq.network.keeper import Keeper
from dataproxy.rocketmq.network.routes import Routes
from dataproxy.rocketmq.network.target import Address, parse_target
from dataproxy.wire.rocketmq.bodies import ConsumerData, Heartbeat, ProducerData
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import Unregister, header_fields
from dataproxy.wire.rocketmq.names import TEMPLATE, ClientId

__all__ = ["Client"]

_LOG: Final = logger("rocketmq")
_HEARTBEAT_S: Final = 30.0
_ROUTES_S: Final = 30.0
_MASTER: Final = 0
_GRACE_S: Final = 0.2  # of the keeper for what it does when its client closes
_LEAVE_S: Final = 0.5  # in which brokers have to answer who takes leave, all together

_open: weakref.WeakSet[Client] = weakref.WeakSet()


class Client:
    """What producers and consumers share.  Any thread.

    ``at_exit`` is called at the end of the process, if ``close`` was not.
    """

    def __init__(
        self,
        target: str,
        *,
        instance: str,
        connect_s: float,
        call_s: float,
        stream: bool,
        at_exit: Callable[[], object],
        tls: TlsOptions,
    ) -> None:
        check_native_threads()
        self.names, secure = parse_target(target)
        trusted = None
        if secure:
            from dataproxy.rocketmq.network.seal import Trusted  # a program without TLS does not load `ssl`

            trusted = Trusted(tls)
        elif any(type(one) is not str or one != usual for one, usual in zip(tls, TlsOptions(), strict=True)):
            raise ConfigError("options of TLS are for TLS", hint="write the target as 'rocketmqs://...'")
        self._pid = os.getpid()
        self._over = False
        self.at_exit: Callable[[], object] = at_exit
        self.warnings = SparingLog(_LOG)  #: of this client, and of the member that it is
        self.handlers: dict[int, Callable[[Address, Link, Incoming], None]] = {}  # requests of brokers, by code
        self.on_parted: Callable[[Address, DataProxyError], None] = lambda _address, _error: None
        self.on_heard: Callable[[Address, Link], None] = lambda _address, _link: None
        self.on_routes: Callable[[list[str]], None] = lambda _topics: None
        self.on_failed: Callable[[DataProxyError], None] = lambda _error: None
        self.producers: tuple[str, ...] = ()  # groups
        self._unheard: dict[Address, DataProxyError] = {}  # why brokers have not taken the newest heartbeat
        self.consumer: Callable[[str], ConsumerData | None] = lambda _name: None  # what a broker hears of it
        self.admits: Callable[[str, Address], bool] = lambda _name, _address: True  # a broker may hear of the consumer
        self.host = _own_host(self.names[0])
        self.id = str(ClientId(self.host, check_instance(instance) or f"{self._pid}#{time.time_ns()}", stream=stream))
        self.connections = Connections(connect_s, call_s, self, trusted)
        try:
            self.routes = Routes(self.names, self.connections)
            self.keeper = Keeper()
        except BaseException:  # there is no thread more: the one that runs is not left behind
            self.connections.close()
            raise
        self.keeper.every(_ROUTES_S, self.refresh)
        self.keeper.every(_HEARTBEAT_S, self.heartbeat)
        _open.add(self)

    @contextlib.contextmanager
    def made_whole(self) -> Iterator[None]:
        """End everything if the block raises: half a consumer would go on to be a member of its group."""
        try:
            yield
        except BaseException:
            self.end()
            raise

    def check(self) -> None:
        """Raise ForkedError in a forked child, ClosedError after ``close``, DataProxyError if it has failed."""
        if self._pid == os.getpid() and not self._over and not self.connections.failure:
            return  # each send comes here
        self.check_own()
        self.check_unclosed()
        self.connections.check_failure()

    def check_unclosed(self) -> None:
        """Raise ClosedError after ``close``."""
        if self._over:
            raise ClosedError("this client was closed", hint="open a new one to continue")

    def check_own(self) -> None:
        """Raise ForkedError in a forked child, whose copies of locks may be held by threads that it does not have."""
        if self._pid != os.getpid():
            raise ForkedError("this client was made before a fork", hint="make one in each process")

    @property
    def trouble(self) -> str:
        """Return why it has failed; empty, if it works."""
        return f"the client has failed ({self.connections.failure})" if self.connections.failure else ""

    @property
    def inherited(self) -> bool:
        """Return whether it was made before a fork."""
        return self._pid != os.getpid()

    def works_here(self) -> bool:
        """Return whether the caller runs on a thread that results of this client need."""
        return is_here(self.connections._thread) or is_here(self.keeper._thread)

    @property
    def unheard(self) -> str:
        """Return why a broker that is there has not taken the newest heartbeat; empty: all have.  Any thread."""
        found = (error.message for error in list(self._unheard.values()) if error.code != "CONNECT_FAILED")
        return next(found, "")

    def is_away(self, address: Address) -> bool:
        """Return whether there is no connection to a broker, or it has not taken the newest heartbeat.  Any thread."""
        return address in self._unheard or self.connections.get(address) is None

    def heartbeat(self, to: Collection[Address] | None = None) -> frozenset[Address]:
        """Tell brokers who this client is: ``to`` these, None: to all that are known.

        Those that are not away are told first.  Returns which could not be told, and are next time.
        """
        untold: set[Address] = set()
        places = [
            (name, number, address)
            for name, known in self.routes.brokers().items()
            for number, address in known.items()
        ]
        for name, number, address in sorted(places, key=lambda place: self.is_away(place[2])):
            if to is not None and address not in to:
                continue
            consumer = self.consumer(name)
            if number != _MASTER and consumer is None:
                continue
            try:
                if consumer is not None and not self.admits(name, address):
                    untold.add(address)
                    continue
                self._tell(address, consumer)
            except DataProxyError as error:
                if error.fatal:
                    raise
                untold.add(address)
                known = self._unheard.get(address)
                if known is None or known.message != error.message:  # once, until it is over
                    self.warnings.warning("no heartbeat: %s", error.message)
                self._unheard[address] = error
            else:
                self._unheard.pop(address, None)
        return frozenset(untold)

    def _tell(self, address: Address, consumer: ConsumerData | None) -> None:
        """Send a broker a heartbeat, and wait for its answer.  Raises DataProxyError."""
        consumers = () if consumer is None else (consumer,)
        body = Heartbeat(self.id, tuple(map(ProducerData, self.producers)), consumers).write()
        answer = self.connections.call(address, Code.HEART_BEAT, {}, body)
        if answer.code != Answer.SUCCESS:
            raise answer_fault(address, "a heartbeat", answer)

    def find(self, topic: str, *, template: bool = False) -> None:
        """Learn where a topic is.  Raises DiscoveryError."""
        before = self.routes.brokers()
        self.routes.ask(topic, template=template)
        new = [places for name, places in self.routes.brokers().items() if before.get(name) != places]
        if any(self.connections.get(address) is not None for places in new for address in places.values()):
            self.keeper.soon(self.heartbeat)  # a broker that is a name server, too: `joined` did not know that

    def learn_brokers(self) -> None:
        """Learn of some broker, for a consumer whose topics do not exist yet.  Raises DiscoveryError."""
        self.routes.ask(TEMPLATE)

    def unregister(self, consumer: str = "") -> None:
        """Take leave of all brokers; of a broker that cannot be told the time of heartbeats runs out.

        All are told; for their answers this waits half a second altogether.
        """
        by = time.monotonic() + _LEAVE_S
        for address in [places[number] for places in self.routes.brokers().values() for number in places]:
            for producer in self.producers or ("",):
                if self.connections.get(address) is None:
                    continue
                try:
                    fields = header_fields(Unregister(self.id, producer, consumer))
                    left = max(0.0, by - time.monotonic())
                    self.connections.call(address, Code.UNREGISTER_CLIENT, fields, seconds=left)
                except DataProxyError as error:
                    _LOG.info("no leave taken: %s", error.message)

    def part(self, leave: Callable[[], object]) -> None:
        """End the keeper, call ``leave``, which tells brokers that a member goes, and close.

        The keeper may bring to its end what it does, for a moment; then its call or its connection that has no answer
        ends.  For connections that are not there ``leave`` waits as little.
        """
        raised = self.keeper.close(_GRACE_S)
        self.connections.forsake(self.keeper._thread)
        raised = self.keeper.close(_GRACE_S) or raised
        self.connections.hurry(_GRACE_S)
        try:
            leave()
        finally:
            self.close()
        if raised is not None:
            raise raised

    def end(self) -> None:
        """Let connections and threads end; this does not wait for them."""
        self._over = True
        if not self.inherited:
            self.keeper.end()
            self.connections.end()
        _open.discard(self)

    def close(self) -> None:
        """End connections and threads.  What a signal handler raises meanwhile is raised after that."""
        self.end()
        if self.inherited:
            return
        raised = self.connections.close()  # which ends a call that the keeper may wait for
        # It waits for nothing any more, but perhaps for the look-up of a name.
        raised = self.keeper.close(_GRACE_S) or raised
        if raised is not None:
            raise raised

    def asked(self, address: Address, link: Link, incoming: Incoming) -> None:
        """Take a request of a broker; one that fails is answered with an error.  Thread: the one that reads."""
        handler = self.handlers.get(incoming.code)
        if handler is not None:
            try:
                handler(address, link, incoming)
            except Exception as error:  # noqa: BLE001 - the thread has other connections
                _LOG.log(logging.ERROR, "request %d of %s has failed", incoming.code, address, exc_info=True)
                self.answer(link, incoming, Answer.SYSTEM_ERROR, f"the client failed: {type(error).__name__}")
        elif not incoming.one_way:
            self.answer(
                link, incoming, Answer.REQUEST_CODE_NOT_SUPPORTED, f"request type {incoming.code} not supported"
            )

    def answer(self, link: Link, incoming: Incoming, code: int, remark: str = "", body: bytes = b"") -> None:
        """Answer a request of a broker; one whose connection has ended gets none."""
        if incoming.one_way or link.closed:
            return
        try:
            link.answer(incoming, code, remark, body)
        except ClosedError:
            return
        self.connections.push(link)

    def joined(self, address: Address) -> None:
        """Let a broker to which there is a new connection know who this is."""
        if any(address in places.values() for places in self.routes.brokers().values()):
            self.keeper.soon(self.heartbeat)

    def heard(self, address: Address, link: Link) -> None:
        """Take the news that answers were told.  Thread: the one that reads."""
        self.on_heard(address, link)

    def parted(self, address: Address, error: DataProxyError) -> None:
        """Take the end of a connection.  Thread: the one that reads, or the one that dropped it."""
        self.on_parted(address, error)

    def failed(self, error: DataProxyError) -> None:
        """Take the end of the thread that reads.  Thread: that one."""
        self.keeper.end()
        self.on_failed(error)

    def refresh(self) -> None:
        """Ask where all topics are.  Thread: the keeper.  Raises DiscoveryError."""
        changed = self.routes.refresh()
        if changed:
            self.on_routes(changed)


def _own_host(server: Address) -> str:
    """Return the address by which this machine reaches a server; no packet is sent, and no name is looked up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, server.host)
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((server.host, server.port))
                return str(probe.getsockname()[0])
        except (OSError, ValueError):
            continue
    return "127.0.0.1"


def _close_all() -> None:
    for client in list(_open):
        if not client.inherited and threading.current_thread() is threading.main_thread():
            try:
                client.at_exit()
            except Exception:  # noqa: BLE001 - the others are closed, too
                _LOG.log(logging.ERROR, "a client could not be closed at the end of the process", exc_info=True)


atexit.register(_close_all)
at_childs_end(_close_all)
