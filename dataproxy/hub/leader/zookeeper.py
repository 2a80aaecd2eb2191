"""A session at ZooKeeper that carries a seat's commands, by the package `kazoo`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.leader.commands import Command, End, Kind, Outcome, Seen
from dataproxy.logs import logger
from dataproxy.problems import shown

__all__ = ["Events", "Session", "split_target"]

_log: Final = logger("hub.cluster")
_SLOWEST_S: Final = 1.0  #: between two tries to connect
_FORM: Final = "write servers and a path that is the cluster's alone: zk1:2181,zk2:2181/hubs"


class Events(Protocol):
    """Who is told of the session's state; called on threads of `kazoo`."""

    def connected(self, session_s: float) -> None:
        """Take a new connection, and the session's time as the servers count it."""
        ...

    def suspended(self) -> None:
        """Take the end of the connection."""
        ...

    def lost(self) -> None:
        """Take the end of the session."""
        ...

    def noticed(self) -> None:
        """Something has changed."""
        ...

    def ended(self, command: Command, outcome: Outcome) -> None:
        """Take the end of a command."""
        ...


def split_target(text: str) -> tuple[str, str]:
    """Return (servers, path) of ``zk1:2181,zk2:2181/path``.  Raises ConfigError."""
    servers, slash, rest = text.strip().partition("/")
    path = slash + rest.rstrip("/")
    parts = path.split("/")[1:]
    if not servers or not path or any(one in ("", ".", "..") or not one.isprintable() for one in parts):
        raise ConfigError(f"tubemq_cluster={shown(text)} names no ZooKeeper", hint=_FORM)
    for one in servers.split(","):
        host, _, port = one.strip().rpartition(":")
        if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536 and len(port) < 6):
            raise ConfigError(f"tubemq_cluster={shown(text)}: {shown(one)} is no server with its port", hint=_FORM)
    return servers, path


class Session:
    """Connects from ``start`` to ``stop``, and begins a new session when one was lost.

    Nodes below ``path``: ``epoch``, whose version counts leaders, and which checks what they write; ``leader`` and
    ``hubs/<id>``, which go with the session of their hub; ``document``.  ``send`` is for one thread.
    """

    def __init__(self, servers: str, path: str, hub: int, session_s: float, events: Events) -> None:
        try:
            from kazoo import exceptions
            from kazoo.client import KazooClient
        except ImportError as error:
            raise HubError(
                f"a cluster of hubs needs a package that is not installed: {error.name}",
                hint="pip install 'dataproxy-sdk[zookeeper]'",
            ) from error
        self._exceptions: Any = exceptions
        self._events, self._servers = events, servers
        self._epoch, self._leader, self._document = (f"{path}/{name}" for name in ("epoch", "leader", "document"))
        self._hubs, self._touched = f"{path}/hubs", f"{path}/touched"
        self._own = f"{self._hubs}/{hub}"
        self._client: Any = KazooClient(
            servers, timeout=session_s, logger=logging.getLogger("dataproxy.hub.cluster.kazoo"),
            connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": _SLOWEST_S},
        )  # fmt: skip
        self._client.add_listener(self._listen)
        self._tell_time(self._client._connection)
        self._commands: dict[Kind, Callable[[Command, Callable[[Outcome], None]], None]] = {
            Kind.ENROL: self._enrol, Kind.LOOK: self._look, Kind.READ: self._read, Kind.RUN: self._run,
            Kind.TOUCH: self._touch, Kind.WRITE: self._write, Kind.RESIGN: self._resign,
        }  # fmt: skip

    def start(self, limit: float) -> None:
        """Connect, and make the nodes that stay.  Raises HubError."""
        try:
            self._client.start(limit)
            for path in (self._epoch, self._document, self._hubs, self._touched):
                self._client.retry(self._client.ensure_path, path)
        except Exception as error:  # of the package or of its sockets
            self.stop()
            raise HubError(
                f"no server of ZooKeeper's answers at {self._servers} within {limit:g} s: {error}",
                hint="start one, or correct tubemq_cluster; a hub alone needs none",
                details={"servers": self._servers},
            ) from error

    def stop(self) -> None:
        """End the session.  Idempotent."""
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:  # noqa: BLE001 - the session ends by itself
            _log.warning("the session at %s was not ended in order: %s", self._servers, error)

    def send(self, command: Command) -> None:
        """Begin a command; its end is told by the events."""

        def told(outcome: Outcome) -> None:
            self._events.ended(command, outcome)

        if not self._client.connected:  # the package would keep it, for a session that may be another one
            told(Outcome(End.UNKNOWN))
            return
        self._commands[command.kind](command, told)

    # --- the session

    def _tell_time(self, connection: Any) -> None:
        """Let the events know of each connection with the session's time; the package keeps the one it asked for."""
        connect = connection._connect

        def connected(*given: Any) -> Any:
            times = connect(*given)
            self._events.connected(times[0] * 1.5 / 1000)  # the first is two thirds of it
            return times

        connection._connect = connected

    def _listen(self, state: str) -> None:
        if state == "SUSPENDED":
            self._events.suspended()
        elif state == "LOST":
            self._events.lost()

    def _watched(self, event: Any) -> None:
        self._events.noticed()

    # --- commands

    def _ended(self, result: Any, done: Callable[[Any], Outcome]) -> Outcome:
        """Return how a request ended, told by its exception; one that refuses is told by ZooKeeper alone."""
        error = result.exception
        if error is None:
            return done(result.value)
        known = self._exceptions
        refused = (known.NoNodeError, known.NodeExistsError, known.BadVersionError, known.RolledBackError)
        return Outcome(End.REFUSED if isinstance(error, refused) else End.UNKNOWN)

    def _changed(self, value: Any) -> Outcome:
        """Return how a transaction ended: an error in it has undone all of it."""
        errors = [one for one in value if isinstance(one, Exception)]
        if not errors:
            return Outcome(End.DONE)
        known = self._exceptions
        refused = (known.NoNodeError, known.NodeExistsError, known.BadVersionError)
        return Outcome(End.REFUSED if any(isinstance(one, refused) for one in errors) else End.UNKNOWN)

    def _commit(self, transaction: Any, told: Callable[[Outcome], None]) -> None:
        transaction.commit_async().rawlink(lambda result: told(self._ended(result, self._changed)))

    def _enrol(self, command: Command, told: Callable[[Outcome], None]) -> None:
        def created(result: Any) -> None:
            if isinstance(result.exception, self._exceptions.NodeExistsError):
                self._client.get_async(self._own).rawlink(
                    lambda found: told(self._ended(found, lambda value: self._same(value[0], command.data)))
                )
            else:  # the node above it may not be there yet
                told(Outcome(End.DONE if result.exception is None else End.UNKNOWN))

        self._client.create_async(self._own, command.data, ephemeral=True).rawlink(created)

    @staticmethod
    def _same(found: bytes, data: bytes) -> Outcome:
        return Outcome(End.DONE if found == data else End.REFUSED)

    def _look(self, command: Command, told: Callable[[Outcome], None]) -> None:
        """Ask for all of it at once: answers come in order, so the last one ends the look.

        The epoch is the first: who finds its own node then, and the epoch as it was, can delete nobody else's.
        """
        client = self._client
        synced = client.sync_async(self._epoch)
        epoch = client.exists_async(self._epoch)
        leader = client.get_async(self._leader, watch=self._watched)
        there = client.exists_async(self._leader, watch=self._watched)  # a watch of what is not there
        document = client.exists_async(self._document, watch=self._watched)

        def listed(names: Any) -> None:
            if names.exception is not None:
                told(self._ended(names, lambda value: Outcome(End.UNKNOWN)))
                return
            hubs = {int(one): client.get_async(f"{self._hubs}/{one}") for one in names.value if one.isdigit()}
            client.exists_async(self._hubs).rawlink(lambda last: told(self._ended(last, lambda _: found(hubs))))

        def found(hubs: dict[int, Any]) -> Outcome:
            for one in (synced, there, epoch, document):
                if one.exception is not None or (one is not there and one.value is None):
                    return Outcome(End.UNKNOWN)
            if leader.exception is not None and not isinstance(leader.exception, self._exceptions.NoNodeError):
                return Outcome(End.UNKNOWN)
            if (leader.exception is None) != (there.value is not None):
                return Outcome(End.UNKNOWN)  # it has come or gone in between
            texts = {number: one.value[0] for number, one in hubs.items() if one.exception is None}
            text = leader.value[0] if leader.exception is None else None
            return Outcome(End.DONE, Seen(text, epoch.value.version, document.value.version, texts))

        client.get_children_async(self._hubs).rawlink(listed)

    def _read(self, command: Command, told: Callable[[Outcome], None]) -> None:
        synced = self._client.sync_async(self._epoch)

        def found(value: Any) -> Outcome:
            if synced.exception is not None:
                return Outcome(End.UNKNOWN)
            return Outcome(End.DONE, data=value[0], version=value[1].version)

        self._client.get_async(self._document).rawlink(lambda result: told(self._ended(result, found)))

    def _run(self, command: Command, told: Callable[[Outcome], None]) -> None:
        transaction = self._client.transaction()
        transaction.set_data(self._epoch, json.dumps(command.epoch + 1).encode(), version=command.epoch)
        transaction.create(self._leader, command.data, ephemeral=True)
        self._commit(transaction, told)

    def _touch(self, command: Command, told: Callable[[Outcome], None]) -> None:
        transaction = self._client.transaction()
        transaction.check(self._epoch, command.epoch)
        transaction.check(self._leader, 0)
        transaction.set_data(self._touched, b"")
        self._commit(transaction, told)

    def _write(self, command: Command, told: Callable[[Outcome], None]) -> None:
        transaction = self._client.transaction()
        transaction.check(self._epoch, command.epoch)
        transaction.set_data(self._document, command.data, version=command.version)
        self._commit(transaction, told)

    def _resign(self, command: Command, told: Callable[[Outcome], None]) -> None:
        transaction = self._client.transaction()
        transaction.check(self._epoch, command.epoch)
        transaction.delete(self._leader)
        self._commit(transaction, told)
