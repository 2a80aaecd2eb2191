"""A topic's messages as a broker keeps them, and how far each group has read.

An offset is a position in the store's index, 28 bytes a message, and all partitions of the topic share the store.
"""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["INDEX_BYTES", "Entry", "Pack", "Progress", "Store"]

INDEX_BYTES: Final = 28
_RECORD_HEAD: Final = 52
_EPOCH_MS: Final = 1_350_282_310_830  # of message ids


class Entry(NamedTuple):
    """One stored message."""

    offset: int
    partition: int
    data_at: int  #: of its record, in the data files
    code: int  #: what filters compare: a hash of its type, -1 without one
    message: int  #: id
    received_ms: int
    checksum: int
    flag: int
    payload: bytes

    @property
    def size(self) -> int:
        """Return the bytes of its record."""
        return _RECORD_HEAD + len(self.payload)


@dataclass
class Pack:
    """What one request for messages found."""

    entries: list[Entry] = field(default_factory=list)
    scanned: int = 0  #: bytes of the index that were looked through
    there: bool = True  #: False: no message that could match lies between the position and the end
    behind: int = 0  #: bytes of data from the last message to the end


class Store:
    """The one store of a topic."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._entries: list[Entry] = []
        self._first = 0  # entries that were deleted
        self._data_end = 0

    @property
    def entries(self) -> list[Entry]:
        """Return the messages that are there."""
        return list(self._entries)

    @property
    def least(self) -> int:
        """Return the offset of the oldest message."""
        return self._first * INDEX_BYTES

    @property
    def end(self) -> int:
        """Return the offset that the next message will have."""
        return (self._first + len(self._entries)) * INDEX_BYTES

    def append(self, partition: int, payload: bytes, flag: int, checksum: int, code: int) -> Entry:
        """Store a message."""
        now_ms = time.time_ns() // 1_000_000
        number = self.end // INDEX_BYTES
        entry = Entry(
            self.end, partition, self._data_end, code, (now_ms - _EPOCH_MS << 22) + number % (1 << 22), now_ms,
            checksum, flag, payload,
        )  # fmt: skip
        self._entries.append(entry)
        self._data_end += entry.size
        return entry

    def trim(self, offset: int) -> None:
        """Delete the messages below an offset."""
        n = min(max(offset - self.least, 0) // INDEX_BYTES, len(self._entries))
        del self._entries[:n]
        self._first += n

    def read(self, position: int, partition: int, codes: AbstractSet[int], most_bytes: int, most_entries: int) -> Pack:
        """Read messages of a partition, with filters only those of some codes, as a broker's memory does.

        Whether something is there is asked of the whole store when filters are used: so a pack can be empty.
        """
        pack = Pack()
        entries, begin = self._entries, position // INDEX_BYTES - self._first
        behind = range(begin, len(entries))
        if not any(entries[i].code in codes if codes else entries[i].partition == partition for i in behind):
            pack.there, pack.scanned = False, self.end - position
            return pack
        total = 0
        for i in behind[:most_entries]:
            one = entries[i]
            pack.scanned += INDEX_BYTES
            if one.partition != partition or (codes and one.code not in codes):
                continue
            pack.entries.append(one)
            total += one.size
            if total >= most_bytes:
                break
        if pack.entries:
            pack.behind = self._data_end - pack.entries[-1].data_at - pack.entries[-1].size
        return pack


@dataclass
class Progress:
    """How far a group is in a partition: what is confirmed, and what of the index was read behind it."""

    confirmed: int
    pending: int = 0

    def commit(self, consumed: bool) -> int:
        """End the pending pack; return the position."""
        if consumed:
            self.confirmed += self.pending
        self.pending = 0
        return self.confirmed

    def locate(self, store: Store, *, consumed: bool, manual: bool) -> int:
        """Return where a request for messages begins; a position outside of the store is moved into it."""
        if not manual:
            self.commit(consumed)
        position = self.confirmed + self.pending
        if position > store.end or position < store.least:
            position = store.end if position > store.end else store.least
            self.confirmed, self.pending = position, 0
        return position

    def book(self, pack: Pack, *, manual: bool) -> None:
        """Note what was read; what had no message is confirmed at once."""
        if pack.scanned == 0:
            return
        self.pending = self.pending + pack.scanned if manual else pack.scanned
        if not pack.entries and not manual:
            self.commit(True)
