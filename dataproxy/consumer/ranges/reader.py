"""The messages of a partition between two offsets: the same ones whenever they are read.

A pack that ends at the range's end, or before it, belongs to the range.  Of one that goes further, the broker is asked
for the first message at the end's offset or behind it: the range's part of the pack ends before that message
(docs/decisions/0032-spark-reads-ranges.md).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy._core.consumer.gotpack import count_broken, find_first, read_pack
from dataproxy.consumer.ranges.calls import broken_answer
from dataproxy.consumer.ranges.registering import FOUND, Client, refusal_of
from dataproxy.errors import DataProxyError, TransportError

if TYPE_CHECKING:
    from dataproxy._core.consumer.pack import Pack
    from dataproxy.config import ConsumerConfig
    from dataproxy.consumer.ranges.calls import Calls
    from dataproxy.consumer.ranges.places import Place

__all__ = ["INDEX_BYTES", "Damaged", "Lost", "Piece", "RangeReader"]

#: Bytes of an offset for each message of a store.
INDEX_BYTES: Final = 28

_MOVED, _FORBIDDEN, _NOTHING, _TOO_FAST = 301, 403, 404, 452
_PATIENT: Final = {_MOVED: 0.2, _TOO_FAST: 0.4}  # waits in s, as many as a broker wants
_WAIT_S: Final = 0.3
_ENDS_READER: Final = (401, 411, 412)
_MOST_TROUBLE: Final = 6  # without progress
_DAMAGED_AGAIN: Final = 2  # a pack with wrong checksums is asked for again that often: the store may have it whole


class Lost(NamedTuple):
    """Offsets of a partition that are not there any more: from ``begin`` up to, without, ``end``.

    ``first`` and ``last`` are where the store begins and ends now.
    """

    place: Place
    begin: int
    end: int
    first: int
    last: int


class Damaged(NamedTuple):
    """``messages`` of the pack at ``offset`` of a partition have a wrong checksum, whenever it is read."""

    place: Place
    offset: int
    messages: int


class Piece(NamedTuple):
    """The first ``rows`` messages of a pack belong to the range.

    ``first`` is the offset of the pack's first message, those of the others follow in steps of `INDEX_BYTES`; None
    where offsets of messages are not known.
    """

    pack: Pack
    rows: int
    first: int | None


class _Again(Exception):  # noqa: N818 - not told to anybody
    """Report that reading has to go on by a new registration."""


class RangeReader:
    """Read ranges of partitions.

    ``lost`` is told what is gone, or damaged, before the rest is read; it may raise.  ``sleep`` waits.  One thread.
    """

    def __init__(
        self, calls: Calls, config: ConsumerConfig, lost: Callable[[Lost | Damaged], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._calls, self._config, self._lost, self._sleep = calls, config, lost, sleep

    def read(self, place: Place, begin: int | None, end: int) -> Generator[Piece]:
        """Yield the messages from one offset up to, without, another; ``begin`` None: from the oldest one.

        Raises TransportError if the broker cannot be asked or refuses, GroupRefusedError (NAMES_TAKEN),
        RemoteProtocolError for broken answers, and what ``lost`` raises.
        """
        one = _Range(self._calls, self._config, self._lost, self._sleep, place, end)
        try:
            yield from one.read(begin)
        finally:
            one.leave()


class _Range:
    """One range, and how far it is read."""

    def __init__(
        self, calls: Calls, config: ConsumerConfig, lost: Callable[[Lost | Damaged], None],
        sleep: Callable[[float], None], place: Place, end: int,
    ) -> None:  # fmt: skip
        self._calls, self._lost, self._sleep, self._place, self._end = calls, lost, sleep, place, end
        self._client = Client(calls, config)
        self._user = bool(config.user)
        self._filters = [item.encode() for item in dict(config.topics).get(place.topic, ())]
        self._group = ""  # that the partition is registered under
        self._asked: int | None = None  # the number of a request for a pack that is under way
        self._store_end = 0  # when it was registered
        self._trouble = 0  # since the last progress

    def read(self, begin: int | None) -> Iterator[Piece]:
        """Yield the range's parts of packs."""
        position: int | None = begin
        registered = False
        while True:
            try:
                if not registered:
                    position = self._register(position)
                    registered = True
                assert position is not None
                if position >= self._end:
                    return
                after, piece = self._step(position)
            except (_Again, TransportError) as error:
                self._pause(error)
                registered = False
                continue
            if after == position:
                return
            position, self._trouble = after, 0
            if piece is not None and piece.rows:
                yield piece

    def leave(self) -> None:
        """Give the partition back."""
        if not self._group:
            return
        with contextlib.suppress(DataProxyError):  # a broker that misses it forgets the reader after a while
            self._calls.wait(self._client.post_unregister(self._place, self._group))

    def _register(self, begin: int | None) -> int:
        """Register, and return where reading begins; what is gone is told."""
        self._asked = None
        found = self._client.take(self._place, 0 if begin is None else begin)
        self._group, self._store_end = found.group, found.end
        if begin is None:
            return found.offset
        if found.offset != begin or found.end < self._end:
            self._lost(Lost(self._place, begin, self._end, found.offset, found.end))
        return found.offset if found.offset >= begin else self._end

    def _pause(self, error: Exception) -> None:
        """Wait after some trouble.  Raises it if it will not end."""
        self._trouble += 1
        if isinstance(error, DataProxyError) and (not error.retriable or self._trouble >= _MOST_TROUBLE):
            raise error
        if self._trouble >= _MOST_TROUBLE:
            raise TransportError(
                f"partition {self._place.key} cannot be read: {error}", details={"partition": self._place.key}
            )
        self._sleep(0.05 * 2**self._trouble)

    # --- packs

    def _step(self, position: int) -> tuple[int, Piece | None]:
        """Read the pack at a position; return where the next one begins, and the range's part of it.

        If that is the position itself, there is nothing more.
        """
        code, _, offset, _, _, came, pack = self._get()
        if pack is None:
            after = self._confirm(consumed=False)
            if after <= position and code == FOUND:
                raise _Again("a broker gives packs without messages")
            if after <= position < self._store_end:
                raise _Again(f"its broker gives no message at {position}, and says that they go to {self._store_end}")
            return max(after, position), None
        if offset != position:
            raise _Again(f"a pack begins at {offset}, expected {position}")
        self._check(pack, position)
        after = self._confirm(consumed=True, ahead=offset + came * INDEX_BYTES < self._end)
        if after <= position:
            raise _Again(f"the pack behind the one at {position} begins at {after}")
        rows = len(pack) if after <= self._end else self._cut(pack)
        known = self._place.alone and not self._filters
        whole = came == len(pack) and after - position == came * INDEX_BYTES
        return after, Piece(pack, rows, offset if known and whole else None)

    def _check(self, pack: Pack, position: int) -> None:
        """Have a pack read again if messages were damaged on their way; tell of those that always are."""
        broken = count_broken(pack)
        if broken and self._trouble < _DAMAGED_AGAIN:
            raise _Again(f"{broken} messages of the pack at {position} have a wrong checksum")
        if broken:
            self._lost(Damaged(self._place, position, broken))

    def _get(self) -> tuple[int, str, int, int, int, int, Pack | None]:
        """Return the answer that has a pack, or says that there is none."""
        while True:
            number = self._client.post_get(self._place, self._group) if self._asked is None else self._asked
            self._asked = None
            found = read_pack(self._calls.wait_data(number), self._place.topic, self._place.key, self._filters)
            if found is None:
                raise broken_answer("GetMessageRequestC2B", self._place.address)
            code, text, wait_ms = found[0], found[1], found[4]
            if code in (FOUND, _NOTHING):
                return found
            if code in _ENDS_READER:
                raise _Again(f"the broker answers with code {code}: {text}")
            refusal = refusal_of(self._place, self._group, code, text, user=self._user)
            if code == _FORBIDDEN:
                raise refusal
            if code in _PATIENT:
                self._sleep(wait_ms / 1000 if wait_ms > 0 else _PATIENT[code])
            else:
                self._pause(refusal)
                self._sleep(_WAIT_S)

    def _confirm(self, *, consumed: bool, ahead: bool = False) -> int:
        """Confirm the last pack, or ask for the position alone; return where the next pack begins.

        ``ahead``: ask for that one at once.
        """
        number = self._client.post_confirm(self._place, self._group, consumed=consumed)
        if ahead:
            self._asked = self._client.post_get(self._place, self._group)
        answer = self._calls.wait(number)
        if answer.errCode != FOUND:
            raise _Again(f"the broker takes no confirm: code {answer.errCode}: {answer.errMsg}")
        return int(answer.currOffset)

    def _cut(self, pack: Pack) -> int:
        """Return how many messages of a pack that goes further than the range belong to it."""
        if self._asked is not None:
            self._calls.forget(self._asked)
            self._asked = None
        found = self._client.register(self._place, self._group, self._end)
        if found.code != FOUND or found.offset != self._end:
            raise _Again(f"the end at {self._end} cannot be read, code {found.code}, offset {found.offset}")
        position = self._end
        while position < found.end:
            beyond = self._get()[-1]
            if beyond is not None and len(beyond):
                at = find_first(pack, beyond)
                return len(pack) if at < 0 else at
            after = self._confirm(consumed=beyond is not None)
            if after <= position:
                break
            position = after
        return len(pack)
