"""ZooKeeper in memory, as much of it as positions of groups need; it can be away, and refuse single nodes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dataproxy.errors import HubError

__all__ = ["ZooPlay"]


class ZooPlay:
    """Nodes with values; ``away`` and ``refused`` (paths) may be changed at any time.  Any thread."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {}
        self.away = False
        self.refused: set[str] = set()
        self.calls: list[list[str]] = []
        self.closed = False
        self._lock = threading.Lock()

    def children(self, paths: Sequence[str]) -> list[list[str]]:
        """Return the names below each path."""
        self._need()
        return [
            sorted({node[len(path) + 1 :].split("/")[0] for node in self.nodes if node.startswith(path + "/")})
            for path in paths
        ]

    def values(self, paths: Sequence[str]) -> list[bytes | None]:
        """Return what each node holds."""
        self._need()
        return [self.nodes.get(path) for path in paths]

    def write(self, nodes: Sequence[tuple[str, bytes]]) -> list[Exception | None]:
        """Write values, except while it is away."""
        with self._lock:
            self.calls.append([path for path, _ in nodes])
            errors: list[Exception | None] = [
                ConnectionError("away") if self.away else PermissionError("no right") if path in self.refused else None
                for path, _ in nodes
            ]
            taken = zip(nodes, errors, strict=True)
            self.nodes.update({path: value for (path, value), error in taken if error is None})
            return errors

    def close(self) -> None:
        """End the session."""
        self.closed = True

    def _need(self) -> None:
        if self.away:
            raise HubError("ZooKeeper is away")
