"""The range of data times that a write has sent, and a warning if it looks wrong."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from dataproxy.logs import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

__all__ = ["TimeSpan", "joined", "odd_times", "warn_once"]

_log = logger("spark.times")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLENNIUM: Final = 946_684_800_000  # 2000-01-01 in milliseconds
_AHEAD: Final = 366 * 86_400_000  # milliseconds; times of the next year are accepted, since plans have them
_REMEMBERED: Final = 1000
_said: Final[set[str]] = set()
_LAST: Final = 253_402_300_800_000  # the year 10000


class TimeSpan:
    """Collect the earliest and the latest data time of the batches of one task.

    ``place`` is the index of the column; negative where there is none.  Thread rule: the worker's one task thread.
    """

    def __init__(self, place: int) -> None:
        self._place = place
        self._found: tuple[int, int] | None = None

    def seen(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the same batches; note the times of each before it."""
        for batch in batches:
            self._look(batch)
            yield batch

    @property
    def milliseconds(self) -> tuple[int, int] | None:
        """Return the earliest and the latest time since 1970; None without a time."""
        return self._found

    def _look(self, batch: pa.RecordBatch) -> None:
        """Take the times of a batch into account; nulls and empty batches have none."""
        if self._place < 0:
            return
        import pyarrow as pa
        from pyarrow import compute

        column: Any = batch.column(self._place)
        ends = compute.min_max(column.view(pa.int64())).as_py()
        if ends["min"] is None:
            return
        unit = 1000 if pa.types.is_timestamp(column.type) else 1  # Spark's timestamps are microseconds
        self._found = joined([self._found, (ends["min"] // unit, ends["max"] // unit)])


def joined(spans: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return the range from the earliest to the latest time of all ranges; None without any."""
    known = [span for span in spans if span is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


def odd_times(span: tuple[int, int] | None, now_ms: int) -> str:
    """Return in words what is wrong with a range: times before 2000, or more than a year ahead; "" if nothing is."""
    if span is None:
        return ""
    first, last = span
    words = []
    if first < _MILLENNIUM:
        words.append(f"begin at {_text(first)}, before the year 2000")
    if last > now_ms + _AHEAD:
        words.append(f"end at {_text(last)}, more than a year ahead")
    if not words:
        return ""
    return (
        f"data times of the column dt {' and '.join(words)}: a bigint counts milliseconds since 1970, so 20240101,"
        " seconds or microseconds mean another time; use a timestamp, or send the column as data (option"
        " columns)"
    )


def warn_once(name: str, span: tuple[int, int] | None) -> None:
    """Log once in a process, for a write or a query with this name, that its data times look wrong."""
    words = odd_times(span, time.time_ns() // 1_000_000)
    if not words or name in _said:
        return
    if len(_said) >= _REMEMBERED:
        _said.clear()
    _said.add(name)
    _log.warning("%s: %s", name, words)


def _text(ms: int) -> str:
    """Return a time as text, or the number if it is beyond the calendar."""
    if not -62_135_596_800_000 <= ms < _LAST:
        return f"{ms} ms"
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(sep=" ", timespec="seconds")
