"""Calls to ZooKeeper's servers, by the package `kazoo`, which changes servers and begins sessions when it has to."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from dataproxy.errors import ConfigError, HubError
from dataproxy.problems import shown

__all__ = ["Servers"]

_SESSION_S: Final = 10.0  #: a server that is silent for two thirds of it is left for another
_SLOWEST_S: Final = 1.0  #: between two tries to connect
_AT_ONCE: Final = 512  #: calls under way
_SERVER: Final = re.compile(r"(?:[^\s,:/\[\]@]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")


class Servers:
    """A session at ZooKeeper until ``close``; it is begun anew when it was lost.

    ``servers`` is a list such as ``zk1:2181,zk2:2181``.  Waits at most ``start_s`` seconds for the first connection,
    and ``call_s`` for the answers to one call of a method.  Any thread, one at a time.  Raises ConfigError for a list
    that is none, HubError when no server answers or the package is missing.
    """

    def __init__(self, servers: str, *, start_s: float = 10.0, call_s: float = 10.0) -> None:
        self._servers, self._call_s = servers, call_s
        _check(servers)
        try:
            from kazoo import exceptions
            from kazoo.client import KazooClient
        except ImportError as error:
            raise HubError(
                f"offsets in ZooKeeper need a package that is not installed: {error.name}",
                hint="pip install 'dataproxy-sdk[zookeeper]'",
            ) from error
        self._absent = exceptions.NoNodeError
        self._client = KazooClient(
            servers, timeout=_SESSION_S, logger=logging.getLogger("dataproxy.hub.zookeeper.kazoo"),
            connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": _SLOWEST_S},
        )  # fmt: skip
        try:
            self._client.start(start_s)
        except Exception as error:  # of the package or of its sockets: a TimeoutError of its own, most of the time
            raise HubError(
                f"no server of ZooKeeper's answers at {servers} within {start_s:g} s: {error}",
                hint="start one, or correct tubemq_zookeeper; without this option the hub needs none",
                details={"servers": servers},
            ) from error

    @property
    def is_connected(self) -> bool:
        """Tell whether a server is connected now."""
        return bool(self._client.connected)

    def children(self, paths: Sequence[str]) -> list[list[str]]:
        """Return the names of the nodes below each path, none where nothing is there.  Raises HubError."""
        return [found or [] for found in self._read(self._client.get_children_async, paths)]

    def values(self, paths: Sequence[str]) -> list[bytes | None]:
        """Return what each node holds, None where it is not there.  Raises HubError."""
        return [found and found[0] for found in self._read(self._client.get_async, paths)]

    def write(self, nodes: Sequence[tuple[str, bytes]]) -> list[Exception | None]:
        """Write values to nodes, made with their parents if they are not there; return what went wrong with each."""
        told: list[Exception | None] = []
        for at in range(0, len(nodes), _AT_ONCE):
            some = nodes[at : at + _AT_ONCE]
            if not self.is_connected:  # the package would keep the calls, and each later try would add to them
                told += [ConnectionError("no server is connected")] * len(some)
                continue
            failed = [error for _, error in self._ended(self._client.set_async(*one) for one in some)]
            absent = [i for i, error in enumerate(failed) if isinstance(error, self._absent)]
            made = self._ended(self._client.create_async(*some[i], makepath=True) for i in absent)
            for i, (_, error) in zip(absent, made, strict=True):
                failed[i] = error
            told += failed
        return told

    def close(self) -> None:
        """End the session.  Idempotent."""
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:  # noqa: BLE001 - the session ends by itself
            self._client.logger.warning("the session at %s was not ended in order: %s", self._servers, error)

    def _read(self, call: Callable[[str], Any], paths: Sequence[str]) -> list[Any]:
        found = []
        for at in range(0, len(paths), _AT_ONCE):
            some = paths[at : at + _AT_ONCE]
            for path, (value, error) in zip(some, self._ended(call(path) for path in some), strict=True):
                if error is not None and not isinstance(error, self._absent):
                    raise HubError(
                        f"ZooKeeper at {self._servers} did not give {shown(path)}: {error!r}",
                        hint="start the hub when its servers work",
                    ) from error
                found.append(value)
        return found

    def _ended(self, calls: Iterable[Any]) -> list[tuple[Any, Exception | None]]:
        """Wait for the ends of calls; return the value of each, or what went wrong with it."""
        begun = list(calls)
        deadline = time.monotonic() + self._call_s
        found: list[tuple[Any, Exception | None]] = []
        for one in begun:
            try:
                found.append((one.get(timeout=max(0.0, deadline - time.monotonic())), None))
            except Exception as error:  # noqa: BLE001 - whatever the package raises is told to the caller
                found.append((None, error))
        return found


def _check(servers: str) -> None:
    """Refuse what is no list of servers.  Raises ConfigError."""
    for one in servers.split(","):
        found = _SERVER.fullmatch(one.strip())
        if found is None or not 0 < int(found[1] or 2181) <= 65535:
            raise ConfigError(
                f"tubemq_zookeeper={shown(servers)}: {shown(one)} is no server", hint="write zk1:2181,zk2:2181"
            )
