"""A server loop of a hub whose clock, connections and commits move only when a test says so: no thread, no socket."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from dataproxy._core.server.core import HubCore
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_net import Net
from tests.native.probe_sim import Node
from tests.sim.answers import AnswerOrder

__all__ = ["ByHand", "Peer"]

_CLIENT, _SERVER = 0, 1


class Peer:
    """A client's side of a connection."""

    def __init__(self, hub: ByHand, index: int) -> None:
        self._net = hub.net
        self._index = index
        self.order = AnswerOrder()

    def say(self, data: bytes) -> None:
        """Bring bytes to the hub."""
        self.order.asked(data)
        self._net.give(self._index, _SERVER, data)

    def hear(self) -> bytes:
        """Take what the hub has written; what is not taken fills the window."""
        data: bytes = self._net.take(self._index, _SERVER)
        self._net.sweep()
        self.order.answered(data)
        assert not self.order.wrong, self.order.wrong
        return data

    def end(self) -> None:
        """Say that nothing more comes."""
        self._net.end(self._index, _SERVER)

    @property
    def closed(self) -> bool:
        """Tell whether the hub has closed the connection."""
        return bool(self._net.closed(self._index, _SERVER))


class ByHand:
    """A hub in memory with one server loop; options as those of HubCore."""

    def __init__(self, *, queue_bytes: int = 1 << 20, **options: Any) -> None:
        settings: dict[str, Any] = {
            "max_frame": 65536, "max_connections": 100_000, "read_idle": 60.0, "reply_bytes": 65536, "compat": False,
            "compress_entries": False, "node_ip": "127.0.0.1", "partitions": 1, "topics": [], "host": "127.0.0.1",
            "port": 0, "threads": 1,
        }  # fmt: skip
        settings.update(options)
        self.net = Net()
        self.store = StoreCore(None, queue_bytes=queue_bytes)
        self.core = HubCore(self.store, queue_bytes=queue_bytes, **settings)
        self.core.open()
        self.node = Node(self.core)
        self.now = 1_000_000

    def connect(self, address: str = "10.0.0.1", window: int = 1 << 30) -> Peer:
        """Return a new connection; ``window`` is how much the hub can write before the peer has taken any of it."""
        index = self.net.dial(window)
        self.node.accept(self.net, index, self.now, address)
        return Peer(self, index)

    def rounds(self, commits: bool = True) -> None:
        """Let the server loop do rounds until it would sleep, with the commits that wait or without."""
        for _ in range(100_000):
            self.net.sweep()
            self.now += 1
            due = self.node.round(self.now, 1_700_000_000_000)
            if commits:
                while self.node.queued():
                    self.node.commit()
            self.net.sweep()
            if not self.node.ready() and due != self.now:
                return
        raise AssertionError("the server loop does not come to rest")

    def stats(self) -> dict[str, Any]:
        """Return the counters of the hub."""
        return dict(self.core.stats())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.net.leave()
        self.core.close_listener()
        self.store.close()
