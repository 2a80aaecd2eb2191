"""Messages of a queue that are out, and the offset behind those that are done."""

from __future__ import annotations

from typing import NamedTuple

from dataproxy._core.remoting.messages import ReceivedMessage

__all__ = ["Backlog", "Chunk"]


class Chunk(NamedTuple):
    """Messages of one queue that are worked on together; ``number`` is that of the backlog's filling."""

    messages: list[ReceivedMessage]
    number: int
    first: int

    def split(self, n: int) -> tuple[Chunk, Chunk]:
        """Return its first ``n`` messages, and the others, of which there is one at least."""
        rest = self.messages[n:]
        return Chunk(self.messages[:n], self.number, self.first), Chunk(rest, self.number, rest[0].offset)


class Backlog:
    """Count what is out.  One thread at a time: the reader's lock."""

    def __init__(self, offset: int) -> None:
        self.number = 0
        self.next = offset  # behind all messages that came
        self.count = 0
        self.bytes = 0
        self.finished = False  # anything of this filling
        self._out: dict[int, Chunk | None] = {}  # by their first offset, which rises; None: a caller has it

    @property
    def done(self) -> int:
        """Return the offset up to which everything is done."""
        return next(iter(self._out), self.next)

    @property
    def idle(self) -> bool:
        """Return whether all that came is done."""
        return not self._out

    def add(self, messages: list[ReceivedMessage], next_offset: int, size: int) -> list[Chunk]:
        """Take messages that came, in chunks of up to ``size``; behind them the queue goes on at ``next_offset``."""
        made = []
        for at in range(0, len(messages), size):
            part = messages[at : at + size]
            chunk = Chunk(part, self.number, part[0].offset)
            self._out[chunk.first] = chunk
            made.append(chunk)
        self.count += len(messages)
        self.bytes += sum(map(len, messages))
        self.next = next_offset
        return made

    def finish(self, chunk: Chunk) -> bool:
        """Count a chunk, or the first messages of one, as done; False: it belongs to an older filling."""
        if chunk.number != self.number or chunk.first not in self._out:
            return False
        whole = self._out[chunk.first]
        self.hand_out(chunk)
        if whole is not None and len(whole.messages) > len(chunk.messages):
            _, rest = whole.split(len(chunk.messages))
            others = self._out.items()
            self._out = dict((rest.first, rest) if first == chunk.first else (first, one) for first, one in others)
        else:
            del self._out[chunk.first]
        self.finished = True
        return True

    def finish_first(self, chunk: Chunk, n: int) -> None:
        """Count the first ``n`` messages of the oldest chunk as done, the others as forgotten: they come again."""
        if chunk.number == self.number and next(iter(self._out), None) == chunk.first and 0 < n < len(chunk.messages):
            _, rest = chunk.split(n)
            others = list(self._out.items())[1:]
            self._out = {rest.first: rest, **dict(others)}

    def hand_out(self, chunk: Chunk) -> None:
        """Count a chunk that a caller has got as held no more; it is not done yet."""
        if chunk.number == self.number and self._out.get(chunk.first) is not None:
            n, size = len(chunk.messages), sum(map(len, chunk.messages))
            self._out[chunk.first] = None  # no call behind it: a signal handler that raises leaves all or nothing
            self.count -= n
            self.bytes -= size

    def take_back(self, chunk: Chunk, n: int) -> Chunk | None:
        """Hold messages of a chunk again that a caller gives back, and return them; the first ``n`` are done.

        None: there are none, because all are done, or because the chunk belongs to an older filling.
        """
        if n >= len(chunk.messages):
            self.finish(chunk)
            return None
        if chunk.number != self.number or chunk.first not in self._out:
            return None
        self.hand_out(chunk)
        rest = chunk.split(n)[1] if n else chunk
        count, size = len(rest.messages), sum(map(len, rest.messages))
        others = self._out.items()
        self._out = dict((rest.first, rest) if first == chunk.first else (first, one) for first, one in others)
        self.count += count
        self.bytes += size
        self.finished = self.finished or n > 0
        return rest

    def move(self, offset: int) -> None:
        """Go on at another place because the broker says so; what is out still counts, unless the place lies before it.

        Offsets that come again could not be told from those that are out, and what is done of these says nothing of
        the messages that have their offsets now.
        """
        if offset < self.next:
            self.reset(offset)
        else:
            self.next = offset

    def reset(self, offset: int) -> None:
        """Forget what is out, and go on at another place: in one step, for the sake of signal handlers."""
        self.number += 1
        self._out = {}
        self.next, self.count, self.bytes, self.finished = offset, 0, 0, False
