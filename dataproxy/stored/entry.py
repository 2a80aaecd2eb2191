"""One stored request, as the hub keeps it: its place, the hub's notes about it, and its records, not decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dataproxy._core.base.column import Bytes
from dataproxy._core.wire.inlong import message
from dataproxy.errors import RemoteProtocolError, StoreError

__all__ = ["StoredEntry", "time_of"]

_TIME_DIGITS: Final = 15  # the year 33658


class StoredEntry(NamedTuple):
    """Hold one stored request: its place, its queue header, and its InLongMsg."""

    topic: str
    partition: int
    offset: int
    receive_ms: int
    data_time_ms: int
    stream_id: str
    source: str
    value: bytes

    def records(self, skip: int = 0) -> Iterator[tuple[bytes, dict[str, str]]]:
        """Yield (body, attributes) of each record behind the first ``skip``, decoded one at a time.

        Raises StoreError if the entry is damaged, after the records before the damage.
        """
        try:
            yield from message.records(self.value, skip=skip)
        except RemoteProtocolError as error:
            raise self._damaged(error) from error

    def runs(self, bodies: Bytes) -> Iterator[tuple[dict[str, str], int]]:
        """Append bodies to a column; yield (attributes, number) for each run of records with the same attributes.

        Raises StoreError if the entry is damaged, after the runs before the damage.
        """
        try:
            yield from message.runs(self.value, bodies)
        except RemoteProtocolError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: RemoteProtocolError) -> StoreError:
        return StoreError(
            f"entry {self.offset} of log ({self.topic!r}, {self.partition}) cannot be decoded: {error.message}",
            hint=f"continue with start={self.offset + 1}",
            details={"topic": self.topic, "partition": self.partition, "offset": self.offset},
        )


def time_of(attrs: dict[str, str], otherwise: int) -> int:
    """Return the data time in ms that the attributes give, else ``otherwise``.

    ``dtMs`` is the time of the message itself, ``dt`` that of its frame.  Numbers beyond the calendar are ignored.
    """
    for name in ("dtMs", "dt"):
        text = attrs.get(name, "")
        if text.isdecimal() and len(text) <= _TIME_DIGITS:
            return int(text)
    return otherwise
