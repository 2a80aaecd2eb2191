"""What the Manager server and its pages need of a hub; they know this description and not the hub itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dataproxy._core.server.store.view import StoreView
from dataproxy.config import HubConfig
from dataproxy.hub.faults.armed import Faults
from dataproxy.hub.listeners import Listener
from dataproxy.hub.nodes import Node
from dataproxy.stored.entry import StoredEntry

if TYPE_CHECKING:  # it needs the package `protobuf`
    from dataproxy.hub.overview.view import View
    from dataproxy.hub.tubemq.service import Service

__all__ = ["CountRow", "Served", "StreamPlace"]

StreamPlace = tuple[int, int, int, str, str]
"""A place among the streams of a store, in the store's own order."""
CountRow = tuple[str, int, str, int, int, int]
"""Counts of a stream in one partition: (group, partition, stream, entries, records, bytes)."""


class Served(Protocol):
    """A hub as its HTTP side sees it.  Any thread; everything but the properties may raise ClosedError."""

    config: HubConfig
    _store_name: str
    _tubemq: Service | None
    _overview: View

    @property
    def host(self) -> str:
        """Return the numeric address that the hub listens on."""
        ...

    @property
    def target(self) -> str:
        """Return the target for producers."""
        ...

    @property
    def token(self) -> str:
        """Return the token for changes over HTTP."""
        ...

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return the listeners for producers, over TCP."""
        ...

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes, with a listener or two each."""
        ...

    @property
    def faults(self) -> Faults:
        """Return the faults that are armed.  Raises ClosedError."""
        ...

    def entries(
        self, group_id: str, stream_id: str | None = None, *, start: int = 0, at: Mapping[int, int] | None = None
    ) -> Iterator[StoredEntry]:
        """Return the stored requests from a place on.  Raises StoreError, ClosedError."""
        ...

    def stats(self) -> dict[str, Any]:
        """Return the counters of the hub, with those of the store under ``store``."""
        ...

    def health(self) -> dict[str, Any]:
        """Return what ``/healthz`` answers."""
        ...

    def _count_page(self, after: StreamPlace | None, most: int) -> tuple[list[CountRow], StreamPlace | None]: ...

    def _view(self) -> StoreView: ...
