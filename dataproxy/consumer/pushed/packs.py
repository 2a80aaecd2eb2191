"""Packs of pushed messages: which wait, which the application has, what became of them, and who waits for any."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.consumer.pack import Pack
from dataproxy._core.consumer.pushedpack import (
    CONFIRMED,
    EXPIRED,
    ROLLED_BACK,
    give_out,
    is_packed,
    make_pack,
    number_of,
    settle,
)
from dataproxy.consumer.outcomes import LATE, RENEWED, UNANSWERED
from dataproxy.consumer.pushed.reader import PackReader, Waiting
from dataproxy.consumer.pushed.unpacking import Unpacking
from dataproxy.process.changes import Changes

if TYPE_CHECKING:
    from dataproxy.rocketmq.group.backlog import Chunk

__all__ = ["Out", "Packs"]

_EARLY_S: Final = 0.001  # that a timer may come before its time
_UNPACKED_MOST: Final = 64 << 20  # bytes of unpacked bodies that wait, from which on one queue's alone become more
_NAMES: Final = {CONFIRMED: "confirmed", ROLLED_BACK: "rolled_back", EXPIRED: "expired"}


class Out:
    """A pack that the application has, or had.  Locks: that of `Packs`."""

    __slots__ = ("confirming", "offset", "own", "reader", "until", "waited")

    def __init__(self, reader: PackReader, waited: Waiting, own: Pack, until: float) -> None:
        self.reader, self.waited, self.own, self.until = reader, waited, own, until
        self.confirming = False  # its confirm was asked for
        self.offset: int | None = -1  # behind what is done with it; -1: it was not counted, None: it counts no more

    def is_behind(self, offset: int) -> bool:
        """Return whether an offset that a hub has taken lies behind all messages of the pack."""
        return offset > self.waited.chunk.messages[-1].offset


class Packs:
    """Keep account of packs.  Any thread.

    ``confirm_s``: how long a pack may stay without a confirm.  ``on_end`` is called for a queue when one of its
    packs has an outcome; ``on_due`` when `expire_late` has to be called at another time.  Locks: its own, which is held
    while locks of readers are taken, never the other way round.
    """

    def __init__(
        self, confirm_s: float, *, awaited: bool, on_end: Callable[[PackReader], object],
        on_due: Callable[[float], object],
    ) -> None:  # fmt: skip
        self._event = -1
        self._confirm_s, self._on_end, self._on_due = confirm_s, on_end, on_due
        self._changes = Changes()
        self._ready: deque[PackReader] = deque()
        self._out: dict[int, Out] = {}
        self._numbers = iter(range(1, 1 << 62))
        self._counts = {name: [0, 0] for name in ("fetched", *_NAMES.values())}  # packs, messages
        self._held = [0, 0]
        self._bytes = 0
        self._due = 0.0  # when `expire_late` is due; 0: it is not
        self.ended = False  #: nothing is given out any more
        if awaited:
            self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def __del__(self) -> None:
        if self._event >= 0:
            os.close(self._event)

    # --- what comes

    def put(self, reader: PackReader, chunks: list[Chunk]) -> None:
        """Take messages of a frame.  Thread: the one that reads."""
        with self._changes.lock:
            self._forget_old(reader)
            if reader.closed or self.ended:
                return  # they come again: nobody acknowledges them
            end = reader.place()[1]
            for chunk in chunks:
                self._await(reader, Waiting(chunk, end), first=False)
            self._offer(reader)

    def _await(self, reader: PackReader, waiting: Waiting, *, first: bool) -> None:
        (reader.waiting.appendleft if first else reader.waiting.append)(waiting)
        n = len(waiting.chunk.messages)
        self._count("fetched", n)
        self._held[0] += 1
        self._held[1] += n
        self._bytes += sum(map(len, waiting.chunk.messages))

    def _forget_old(self, reader: PackReader) -> None:
        """End what is of an older session of the queue: it comes again."""
        if reader.waiting and not reader.is_current(reader.waiting[0].chunk):
            self._drop_waiting(reader, EXPIRED)
        for out in [one for one in self._out.values() if one.reader is reader and one.offset == -1]:
            if not reader.is_current(out.waited.chunk):
                self._settle(out, EXPIRED, RENEWED)

    def _offer(self, reader: PackReader) -> None:
        """Let a queue give out its next pack, if it has one and may."""
        if reader.waiting and not (reader.is_ready or reader.has_out or reader.closed or self.ended):
            reader.is_ready = True
            self._ready.append(reader)
            self._wake()

    def _wake(self) -> None:
        self._changes.tell()
        if self._event >= 0:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(self._event, 1)

    # --- the application

    def take(self, consumer: object, seconds: float) -> Pack | None:
        """Return the next pack, None: none came within the time, or none will come.

        Bodies that are packed are unpacked here, a portion at a time, and without the lock.
        """
        until = time.monotonic() + seconds
        while True:
            with self._changes.lock:
                found = None if self.ended else self._next(consumer)
                left = until - time.monotonic()
                if isinstance(found, Pack) or self.ended or (found is None and left <= 0):
                    return found if isinstance(found, Pack) else None
                waiter = self._changes.waiter() if found is None else None
            if waiter is not None:
                self._changes.wait(waiter, left)
            elif isinstance(found, Unpacking) and not found.go_on():
                with self._changes.lock:
                    if self._ready and self._ready[0].unpacking is found:
                        self._ready.rotate(-1)  # a queue with much to unpack lets the others have their turn
                    if until <= time.monotonic():
                        self._wake()  # whoever comes next goes on
                        return None

    def _next(self, consumer: object) -> Pack | Unpacking | None:
        """Return the next pack, or what has to be unpacked before there is one; None: there is nothing to do."""
        for _ in range(len(self._ready)):
            reader = self._ready[0]
            if reader.closed or reader.has_out or not reader.waiting:
                self._pass_over(reader)
                continue
            unpacking = self._unpacking_of(reader)
            if unpacking is None or unpacking.done:
                return self._give(reader, unpacking, consumer)
            if self._has_room(unpacking) and not unpacking.lock.locked():  # by another thread, which unpacks a portion
                return unpacking
            self._ready.rotate(-1)
        return None

    def _unpacking_of(self, reader: PackReader) -> Unpacking | None:
        """Return how far the first bodies of a queue are unpacked, None: they are not packed."""
        chunk = reader.waiting[0].chunk
        if reader.unpacking is None or reader.unpacking.chunk is not chunk:
            reader.unpacking = Unpacking(chunk) if is_packed(chunk.messages) else None
        return reader.unpacking

    def _has_room(self, unpacking: Unpacking) -> bool:
        """Return whether more may be unpacked of a queue: while much waits, only of the one that is furthest."""
        sizes = [one.unpacking.bytes for one in self._ready if one.unpacking is not None]
        return sum(sizes) < _UNPACKED_MOST or unpacking.bytes == max(sizes)

    def _give(self, reader: PackReader, unpacking: Unpacking | None, consumer: object) -> Pack:
        """Give out the first messages of a queue; all of them, or those that are unpacked."""
        waited, bodies = reader.waiting[0], None if unpacking is None else unpacking.bodies
        if bodies is not None and len(bodies) < len(waited.chunk.messages):
            first, rest = (Waiting(one, waited.end) for one in waited.chunk.split(len(bodies)))
            others = list(reader.waiting)[1:]
            reader.waiting = deque((first, rest, *others))  # in one step, for the sake of signal handlers
            self._count("fetched", 0)
            self._held[0] += 1
            waited = first
        number, until = next(self._numbers), time.monotonic() + self._confirm_s
        own = make_pack(waited.chunk.messages, reader.queue.topic, reader.key, number, waited.end, bodies)
        pack = give_out(own, consumer)
        self._watch(until)
        out = Out(reader, waited, own, until)
        # What a signal handler raises comes behind calls: it leaves a pack that expires, and none that is lost.
        self._out[number] = reader.out = out
        reader.n_open += 1
        reader.waiting.popleft()
        self._pass_over(reader)
        if unpacking is not None:
            reader.unpacking = None
            self._changes.tell()  # there is room for others
        return pack

    def _pass_over(self, reader: PackReader) -> None:
        """Take the first queue out of the line."""
        reader.is_ready = False
        self._ready.popleft()

    def begin_confirm(self, pack: Pack, seconds: float) -> Out | None:
        """Count a pack as done and return it, None if its end is known already; the queue's next pack may go out.

        ``seconds``: after which nobody waits for the answer any more.  The next pack goes out behind the count: of two
        packs of a queue the first is counted first.  A confirm that an exception ends before it comes to that is one of
        a pack that comes again.
        """
        until = time.monotonic() + seconds
        with self._changes.lock:
            out = self._out.get(number_of(pack))
            if out is None or out.confirming:
                return None
            self._watch(until)
            out.confirming, out.until = True, until
            out.offset = out.reader.consume(out.waited.chunk)
            out.reader.out = None
            self._offer(out.reader)
            return out

    def roll_back(self, pack: Pack) -> None:
        """Take a pack back: its messages are the first of their queue that go out again."""
        with self._changes.lock:
            out = self._out.get(number_of(pack))
            if out is not None and not out.confirming:
                self._again(out, ROLLED_BACK, 0)

    def _again(self, out: Out, outcome: int, code: int) -> None:
        reader, waited = out.reader, out.waited
        comes = not (reader.closed or self.ended) and reader.is_current(waited.chunk)
        if comes and (not reader.waiting or reader.waiting[0] is not waited):
            self._await(reader, waited, first=True)  # before its end, which lets the queue's first pack go out
        self._settle(out, outcome, code)

    def end(self, out: Out, outcome: int, code: int = 0) -> None:
        """Set the outcome of a pack."""
        with self._changes.lock:
            self._settle(out, outcome, code)

    def _settle(self, out: Out, outcome: int, code: int) -> None:
        number, n, reader = number_of(out.own), len(out.waited.chunk.messages), out.reader
        if number not in self._out:
            return
        had = reader.out is out
        settle(out.own, outcome, code)
        del self._out[number]  # no call until the queue is free: what a signal handler raises leaves none that is not
        reader.n_open -= 1
        self._held[0] -= 1
        self._held[1] -= n
        if had:
            reader.out = None
            self._offer(reader)
        self._count(_NAMES[outcome], n)
        self._wake()
        self._on_end(reader)

    def _count(self, name: str, messages: int) -> None:
        self._counts[name][0] += 1
        self._counts[name][1] += messages

    # --- ends

    def close_queue(self, reader: PackReader, outcome: int = ROLLED_BACK) -> None:
        """Give back what waits of a queue; what is out can be confirmed."""
        with self._changes.lock:
            self._drop_waiting(reader, outcome)

    def _drop_waiting(self, reader: PackReader, outcome: int) -> None:
        reader.unpacking = None
        while reader.waiting:
            n = len(reader.waiting.popleft().chunk.messages)
            self._count(_NAMES[outcome], n)
            self._held[0] -= 1
            self._held[1] -= n

    def expire(self, code: int, readers: Iterable[PackReader] | None = None) -> None:
        """End the packs that the application has, or had: of some queues, or of all."""
        with self._changes.lock:
            for out in [one for one in self._out.values() if readers is None or one.reader in readers]:
                self._settle(out, EXPIRED, UNANSWERED if out.confirming else code)

    def expire_late(self) -> None:
        """End the packs that were out for too long; their messages go out again.  Thread: the one that reads."""
        with self._changes.lock:
            now = time.monotonic()
            if not self._due or now < self._due - _EARLY_S:
                return  # it was called at an earlier time, too, and is called again
            self._due = 0.0
            for out in [one for one in self._out.values() if one.until <= now]:
                if out.offset == -1:
                    self._again(out, EXPIRED, UNANSWERED if out.confirming else LATE)
                else:
                    self._settle(out, EXPIRED, UNANSWERED)
            if self._out:
                self._watch(min(one.until for one in self._out.values()))

    def _watch(self, until: float) -> None:
        if not self._due or until < self._due:
            self._on_due(max(0.0, until - time.monotonic()))
            self._due = until  # behind the call: what a signal handler raises leaves a timer too many, and none missing

    def stop(self) -> None:
        """Give out nothing more."""
        with self._changes.lock:
            self.ended = True
            self._ready.clear()
            self._wake()

    def open_of(self, reader: PackReader | None = None) -> tuple[int, int]:
        """Return how many packs of a queue, or of all, the application has, and for how many an answer is awaited."""
        with self._changes.lock:
            found = [one for one in self._out.values() if reader is None or one.reader is reader]
            confirming = sum(one.confirming for one in found)
            return len(found) - confirming, confirming

    # --- waits and counts

    def wait(self, pack: Pack, seconds: float) -> bool:
        """Wait for a pack's outcome; False: it has none yet."""
        until = time.monotonic() + seconds
        while True:
            with self._changes.lock:
                if pack.outcome != "held":
                    return True
                left = until - time.monotonic()
                if left <= 0:
                    return False
                waiter = self._changes.waiter()
            self._changes.wait(waiter, left)

    def fileno(self) -> int:
        """Return the descriptor that can be read when there may be a pack, or an outcome."""
        return self._event

    def look(self) -> None:
        """Clear the descriptor, before packs and outcomes are looked for."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)

    def tally(self) -> dict[str, Any]:
        """Return the counts, all of one moment."""
        with self._changes.lock:
            found: dict[str, Any] = {"bytes": self._bytes}
            for i, kind in enumerate(("packs", "messages")):
                found[kind] = {name: counts[i] for name, counts in self._counts.items()} | {"held": self._held[i]}
        return found
