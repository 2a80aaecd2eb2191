"""Records read back from a store: one entry holds one request, a record is one message of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import ClosedError, ConfigError
from dataproxy.stored.entry import StoredEntry, time_of

__all__ = ["LogInfo", "Record", "StreamCount", "offset_at", "read_entries", "read_records", "records_of"]

_BATCH_ENTRIES: Final = 1024
_BATCH_BYTES: Final = 4 << 20
#: Seconds between two looks for new entries: first and longest.
_POLL: Final = (0.005, 0.1)


class StreamCount(NamedTuple):
    """Count what is stored of one stream: entries (requests), records (messages), bytes of the entries."""

    entries: int
    records: int
    bytes: int


class LogInfo(NamedTuple):
    """Describe one log: offsets from ``first_offset`` up to, not including, ``next_offset`` are stored."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    entries: int
    records: int
    bytes: int


def offset_at(view: StoreView, log: LogInfo, time_ms: int) -> int:
    """Return the first offset received at ``time_ms`` or later; times grow with offsets unless the clock was set back.

    Retention may drop entries during the search: then the next entry is examined instead.
    """
    low, high = log.first_offset, log.next_offset
    while low < high:
        middle = (low + high) // 2
        found = view.read(log.topic, log.partition, middle, 1, 1)
        if found and found[0][1][0] < time_ms:
            low = found[0][0] + 1
        else:
            high = middle
    return min(low, log.next_offset)


@dataclass(frozen=True, slots=True)
class Record:
    """Hold one stored message.

    ``attrs`` are all attributes of the message, shared by the records of a request: do not change them.
    ``dt_ms`` is its data time in ms.  ``topic``, ``partition`` and ``offset`` name the entry, ``index`` the
    record in it.  ``receive_ms`` and ``source`` tell when and from which address the hub received it.
    """

    group_id: str
    stream_id: str
    body: bytes
    attrs: dict[str, str]
    dt_ms: int
    topic: str
    partition: int
    offset: int
    index: int
    receive_ms: int
    source: str

    @property
    def message_id(self) -> str:
        """Return the id that the producer gave the message or made for it; empty if the producer has no ids."""
        own = self.attrs.get("msgid")
        if own:
            return own
        pack = self.attrs.get("sid")
        return f"{pack}.{self.index}" if pack else ""


def read_records(
    view: StoreView,
    group_id: str,
    stream_id: str | None = None,
    *,
    start: int = 0,
    at: Mapping[int, int] | None = None,
    follow: bool = False,
) -> Iterator[Record]:
    """Yield the records of a group, or of one stream of it, oldest first in each log.

    ``start`` is the first offset wanted of each log, ``at`` that of single partitions; what retention has
    dropped is passed over.  With ``follow`` the iterator waits for more and ends when the store is closed.
    Raises ConfigError for a negative start, StoreError, and ClosedError.  One thread for each iterator.
    """
    if start < 0:
        raise ConfigError(f"start {start!r} is not an offset", hint="give 0 or more")
    entries = read_entries(view, group_id, stream_id, start=start, at=at, follow=follow)
    return (record for entry in entries for record in records_of(entry))


def records_of(entry: StoredEntry, skip: int = 0) -> Iterator[Record]:
    """Yield the records of an entry behind the first ``skip``, decoded one at a time.

    Raises StoreError where it is damaged.
    """
    for index, (body, attrs) in enumerate(entry.records(skip), skip):
        yield Record(
            attrs.get("groupId", entry.topic),
            attrs.get("streamId", entry.stream_id),
            body,
            attrs,
            time_of(attrs, entry.data_time_ms),
            entry.topic,
            entry.partition,
            entry.offset,
            index,
            entry.receive_ms,
            entry.source,
        )


def read_entries(
    view: StoreView,
    group_id: str,
    stream_id: str | None = None,
    *,
    start: int = 0,
    at: Mapping[int, int] | None = None,
    follow: bool = False,
    logs: list[LogInfo] | None = None,
) -> Iterator[StoredEntry]:
    """Yield entries, not decoded, in the way in which ``read_records`` yields records.

    ``at`` gives first offsets by partition; ``start`` holds for the other partitions.  ``logs`` are those of the group
    where they are known, so that reading many groups looks through them once.  The caller may change ``at`` afterwards.
    """
    return _follow(view, group_id, stream_id, start, dict(at or {}), logs, follow=follow)


def _follow(
    view: StoreView,
    group_id: str,
    stream_id: str | None,
    start: int,
    places: dict[int, int],
    logs: list[LogInfo] | None,
    *,
    follow: bool,
) -> Iterator[StoredEntry]:
    pause = _POLL[0]
    while True:
        found = False
        try:
            for batch in _round(view, group_id, stream_id, start, places, logs):
                found = True
                yield from batch
        except ClosedError:
            if follow:
                return
            raise
        if found:
            pause = _POLL[0]
        elif not follow:
            return
        else:
            time.sleep(pause)
            pause = min(2 * pause, _POLL[1])


def _round(
    view: StoreView,
    group_id: str,
    stream_id: str | None,
    start: int,
    places: dict[int, int],
    logs: list[LogInfo] | None,
) -> Iterator[list[StoredEntry]]:
    """Yield the next batch of each log of the group, and move the log's place behind it."""
    for topic, partition, _, next_offset, *_ in view.logs(group_id) if logs is None else logs:
        place = places.get(partition, start)
        if topic != group_id or place >= next_offset:
            continue
        entries = view.read(topic, partition, place, _BATCH_ENTRIES, _BATCH_BYTES, stream_id)
        if not entries:
            # This stream has no more entries below `next_offset`: the next round starts there.
            places[partition] = max(place, next_offset)
            continue
        places[partition] = entries[-1][0] + 1
        yield [
            StoredEntry(topic, partition, offset, receive_ms, data_time_ms, stream, source, value)
            for offset, (receive_ms, data_time_ms, _, stream, source, _), value in entries
        ]
