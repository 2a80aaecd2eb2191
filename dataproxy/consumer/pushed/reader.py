"""One queue that a hub pushes, and whose messages go out as packs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dataproxy.rocketmq.group.pushed import PushedReader
from dataproxy.rocketmq.group.reader import Sink

if TYPE_CHECKING:
    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.consumer.pushed.packs import Out
    from dataproxy.consumer.pushed.unpacking import Unpacking
    from dataproxy.rocketmq.group.backlog import Chunk
    from dataproxy.wire.rocketmq.headers import Pushed

__all__ = ["PackReader", "Waiting"]


class Waiting(NamedTuple):
    """Messages of one frame that nobody has; ``end``: that of the queue when they came."""

    chunk: Chunk
    end: int


class PackSink(Sink, Protocol):
    """Where packs go."""

    def _moved(self, reader: PackReader) -> None:
        """Take the news that a queue without a session goes on at another place.  Thread: the keeper."""


class PackReader(PushedReader):
    """A queue of which one pack is out at a time.  Locks: that of `QueueReader`; of what has no remark here, `Packs`'.

    A queue that is *parked* is not claimed, so that its hub ends the session: for a pause, for a seek, and where frames
    were left aside that only a new session brings again.  ``told``: its hubs have heard of that.
    """

    _sink: PackSink

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        queue = self.queue
        self.key = f"{queue.broker_name}:{queue.topic}:{queue.queue_id}"
        self.number = 0  # constant once it is known to the application
        self.waiting: deque[Waiting] = deque()
        self.unpacking: Unpacking | None = None  # of the first that waits
        self.is_ready = False  # it is in the line of those that have a pack to give out
        self.out: Out | None = None  # the pack that the application has, before it asks for its end
        self.n_open = 0  # packs without an outcome that the application has, or had
        self.told = True  # thread: the keeper
        self.held_back = False  # the application has paused it
        self.left_at = 0.0  # when it was given up; thread: the keeper

    @property
    def has_out(self) -> bool:
        """Return whether the application has a pack whose end it has not asked for: no other one goes out."""
        return self.out is not None

    @property
    def closed(self) -> bool:
        """Return whether nothing of it is given out now."""
        return self.parked or self.paused or self.dropped

    def take(self, frame: Pushed, messages: list[ReceivedMessage]) -> bool:
        """Take a frame; those of a session that is given up are left aside.  Thread: the one that reads."""
        return True if self.closed else super().take(frame, messages)

    def consume(self, chunk: Chunk) -> int | None:
        """Count messages as done; return the offset to be acknowledged, None if they count no more."""
        with self.lock:
            if self.dropped or not self.backlog.finish(chunk):
                return None
            self._acknowledged = self.backlog.done
            return self._acknowledged

    def is_current(self, chunk: Chunk) -> bool:
        """Return whether messages are of the session that goes on."""
        with self.lock:
            return not self.dropped and chunk.number == self.backlog.number

    def begin_anew(self, offset: int | None = None) -> None:
        """Let the next frame begin another session; ``offset``: where the group was moved to."""
        with self.lock:
            self._session = -1
            self.backlog.reset(self.backlog.done if offset is None else offset)
            self._acknowledged = self.backlog.done

    def seek(self, offset: int) -> None:
        """Take the news that the group was moved.  A session that goes on ends, and the hub begins another one there.

        Without one nothing would say so: what is out counts no more, and the queue begins at the new place.
        """
        with self.lock:
            if not self.parked and self._session >= 0:
                return
            self.begin_anew(offset)
        self._sink._moved(self)

    def place(self) -> tuple[int, int]:
        """Return where the next pack begins, and the end of the queue as it was told last, -1: not yet."""
        with self.lock:
            end = -1 if self._session < 0 else self.backlog.next + self.lagging
            if self.waiting:
                return self.waiting[0].chunk.first, end
            return self.backlog.done if self.parked else self.backlog.next, end
