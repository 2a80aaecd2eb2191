"""Pages of stored records: bounded in bytes of JSON, with the place of the next page, also inside of an entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from dataproxy.errors import StoreError
from dataproxy.hub.reading.records import Record, records_of
from dataproxy.problems import shown
from dataproxy.shown import json_text
from dataproxy.stored.entry import StoredEntry

__all__ = ["Place", "Readable", "passed", "read_page"]

_OFFSET_MOST: Final = 2**63 - 1
_PARTITION_MOST: Final = 2**32 - 1
_INDEX_MOST: Final = 2**32 - 1
_DIGITS: Final = 20  # of a number: valid ones are shorter, and Python refuses to convert very long texts
#: Bytes of a record in JSON besides its names, its body and its attributes.
_ROW_BYTES: Final = 200


class Readable(Protocol):
    """An object with stored requests, such as a hub."""

    def entries(
        self, group_id: str, stream_id: str | None = None, *, start: int = 0, at: Mapping[int, int] | None = None
    ) -> Iterator[StoredEntry]:
        """Return the stored requests from a place on."""
        ...


@dataclass(slots=True)
class Place:
    """Hold the place of the next record: an offset for each partition in ``at``, ``start`` for all others.

    ``skip`` says how many records of the entry at that offset were read before.  The text form is
    ``START[,PARTITION:OFFSET[.RECORDS]]...``, so a plain number is also a place.
    """

    start: int = 0
    at: dict[int, int] = field(default_factory=dict)
    skip: dict[int, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Place:
        """Return the place of a text.  Raises ValueError."""
        first, *rest = text.split(",")
        place = cls(_number(first or "0", _OFFSET_MOST, text))
        for item in rest:
            partition, _, where = item.partition(":")
            offset, dot, records = where.partition(".")
            number = _number(partition, _PARTITION_MOST, text)
            place.at[number] = _number(offset, _OFFSET_MOST, text)
            if dot:
                place.skip[number] = _number(records, _INDEX_MOST, text)
        return place

    def move(self, partition: int, offset: int, records: int = 0) -> None:
        """Move to an entry, behind its first ``records`` records."""
        self.at[partition] = offset
        self.skip.pop(partition, None)
        if records:
            self.skip[partition] = records

    def skipped(self, entry: StoredEntry) -> int:
        """Return how many records of an entry were read before."""
        return self.skip.get(entry.partition, 0) if self.at.get(entry.partition) == entry.offset else 0

    def __str__(self) -> str:
        return ",".join([str(self.start), *(self._part(partition) for partition in self.at)])

    def _part(self, partition: int) -> str:
        records = self.skip.get(partition)
        return f"{partition}:{self.at[partition]}" + (f".{records}" if records else "")


def read_page(
    source: Readable, group: str, stream: str | None, place: Place, limit: int, most_bytes: int
) -> list[Record]:
    """Return records from ``place`` on, and move ``place`` behind them: whole entries up to ``limit`` records or more.

    A page also ends when its records have ``most_bytes`` as JSON, if necessary in the middle of an entry.  It has at
    least one record, unless there is none or ``limit`` is 0.  Raises StoreError if the first entry is damaged, with the
    place behind it; an earlier page ends before a damaged entry.
    """
    rows: list[Record] = []
    left = most_bytes
    texts = _Texts()
    entries = source.entries(group, stream, start=place.start, at=dict(place.at))
    while len(rows) < limit and left > 0:
        try:
            entry = next(entries, None)
        except StoreError as error:  # the entry is damaged
            if rows:
                break
            raise passed(error, place) from error
        if entry is None:
            break
        done = place.skipped(entry)
        try:
            for record in records_of(entry, done):
                if left <= 0:
                    break
                rows.append(record)
                done += 1
                left -= texts.json_bytes(record)
            else:
                place.move(entry.partition, entry.offset + 1)
                continue
            place.move(entry.partition, entry.offset, done)
            break
        except StoreError as error:
            if rows:
                if done:
                    place.move(entry.partition, entry.offset, done)
                break
            raise passed(error, place) from error
    return rows


def passed(error: StoreError, place: Place) -> StoreError:
    """Return the error to raise for ``error``; if it names an entry, move ``place`` behind it and add the new place."""
    partition, offset = error.details.get("partition"), error.details.get("offset")
    text, details = error.message, dict(error.details)
    if isinstance(partition, int) and isinstance(offset, int):
        place.move(partition, offset + 1)
        text, details["next"] = f"{text}; continue with start={place}", str(place)
    return StoreError(text, code=error.code, hint=error.hint, retriable=error.retriable, details=details)


class _Texts:
    """Measure the texts of records; texts that all records of a request share are measured once."""

    def __init__(self) -> None:
        self._record: Record | None = None
        self._bytes = 0

    def json_bytes(self, record: Record) -> int:
        """Return an estimate of a record's bytes in an answer: one character may become twelve bytes."""
        last = self._record
        if last is None or record.attrs is not last.attrs or record.offset != last.offset:
            self._bytes = len(json_text([record.group_id, record.stream_id, record.attrs]).encode())
            self._record = record
        return _ROW_BYTES + 4 * len(record.body) // 3 + self._bytes


def _number(text: str, most: int, place: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS or int(text) > most:
        raise ValueError(f"the parameter start={shown(place)} is not a place: give a number, or the value of next")
    return int(text)
