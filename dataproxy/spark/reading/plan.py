"""The plan of a read: ranges of offsets, decided once on the driver, so that later records are not in it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from dataproxy.errors import ConfigError, StoreError
from dataproxy.logs import logger
from dataproxy.spark.driverlog import open_log
from dataproxy.spark.reading.hubclient import HubAddress, HubClient, LogState
from dataproxy.spark.reading.options import Bound, ReadSettings, read_settings
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LogRange", "ReadPlan", "plan_read", "tell_loss"]

_log = logger("spark.reading")


class LogRange(InputPartition):  # type: ignore[misc]  # mypy does not follow pyspark
    """Hold the range for one task: offsets of one of the hub's partitions, from ``start`` up to, without, ``end``."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        self.partition = partition
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"LogRange({self.partition}, {self.start}, {self.end})"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Everything that tasks need for a read."""

    hub: HubAddress
    group_id: str
    stream_id: str
    fail_on_loss: bool
    store: str
    ranges: tuple[LogRange, ...]


def plan_read(options: Mapping[str, str]) -> ReadPlan:
    """Check the options, ask the hub for its present offsets, and return the ranges to read.

    Raises ConfigError for options and offsets, StoreError (code DATA_LOST) for offsets that retention has dropped,
    TransportError and HubError when the hub cannot be asked.
    """
    with sparks_words():
        settings = read_settings(options)
        with closing(HubClient(settings.hub)) as hub:
            store, logs = hub.logs(settings.group_id)
            if not logs:
                open_log(wanted=True)
                _log.warning("the hub at %s has nothing of group %r", settings.hub.url, settings.group_id)
            starts = _offsets(hub, settings, settings.start, logs, {log.partition: log.first_offset for log in logs})
            ends = _offsets(hub, settings, settings.end, logs, {log.partition: log.next_offset for log in logs})
        ranges = [
            one
            for log in logs
            for one in _split(_within_log(settings, log, starts[log.partition], ends[log.partition]), log, settings)
        ]
        return ReadPlan(
            settings.hub, settings.group_id, settings.stream_id, settings.fail_on_loss, store, tuple(ranges)
        )


def _offsets(
    hub: HubClient, settings: ReadSettings, bound: Bound, logs: list[LogState], default: dict[int, int]
) -> dict[int, int]:
    """Return one end of each log's range.  Raises ConfigError for partitions that the group does not have."""
    if bound.time_ms is not None:
        _, found = hub.logs(settings.group_id, bound.time_ms)
        at = {log.partition: log.offset for log in found if log.offset is not None}
        # Entries that came after the first request are not part of the read.
        return {log.partition: min(at.get(log.partition, log.next_offset), log.next_offset) for log in logs}
    if bound.offset is not None:
        return dict.fromkeys(default, bound.offset)
    named = dict(bound.by_partition)
    unknown = sorted(named.keys() - default.keys())
    if unknown:
        raise ConfigError(
            f"offsets are given for the partitions {unknown} of group {settings.group_id!r}, which has"
            f" {sorted(default)}",
            hint="name partitions that are there, or leave the others out",
        )
    given = {partition: offset for partition, offset in named.items() if offset is not None}
    return default | given


def _within_log(settings: ReadSettings, log: LogState, start: int, end: int) -> LogRange:
    """Return the part of the range that the log has.  Raises ConfigError, and StoreError for dropped offsets."""
    if start > log.next_offset or end > log.next_offset:
        text = (
            f"partition {log.partition} of group {settings.group_id!r} ends at offset {log.next_offset}, but"
            f" offset {max(start, end)} was requested"
        )
        if settings.fail_on_loss:
            raise ConfigError(
                text, hint="give an offset up to this one, or failOnDataLoss=false to read the existing ones"
            )
        open_log(wanted=True)
        _log.warning("%s; the existing entries are read", text)
    elif start > end and settings.start.time_ms is None and settings.end.time_ms is None:
        raise ConfigError(
            f"of partition {log.partition} of group {settings.group_id!r} the offsets from {start} to {end} were"
            " requested, but the start is after the end",
            hint="check startingOffsets and endingOffsets",
        )
    start, end = min(start, log.next_offset), min(end, log.next_offset)
    if start < min(end, log.first_offset):
        gone = min(end, log.first_offset)
        tell_loss(settings.group_id, "", log.partition, (start, gone), fail=settings.fail_on_loss)
        start = gone
    return LogRange(log.partition, start, max(start, end))


def _split(whole: LogRange, log: LogState, settings: ReadSettings) -> list[LogRange]:
    """Return a range in parts of about the wanted bytes, estimated by the average entry of the log."""
    entries = whole.end - whole.start
    size = max(1, log.bytes // max(1, log.entries))
    each = max(1, settings.partition_bytes // size)
    return [
        LogRange(whole.partition, start, min(start + each, whole.end))
        for start in range(whole.start, whole.start + entries, each)
    ]


def tell_loss(group: str, stream: str, partition: int, lost: tuple[int, int], *, fail: bool) -> None:
    """Raise StoreError (code DATA_LOST) for offsets that were dropped; without ``fail`` only log it.

    If the read is for one ``stream``, it is not known whether the dropped entries belonged to it.
    """
    what = f"the offsets {lost[0]} to {lost[1] - 1} of partition {partition} of group {group!r}"
    doubt = f"; it is unknown whether some of them belonged to stream {stream!r}" if stream else ""
    text = f"{what} were dropped by the hub's retention before they were read{doubt}"
    if fail:
        raise StoreError(
            text,
            code="DATA_LOST",
            hint="raise retention_age, retention_bytes or max_store_bytes, or read the rest with failOnDataLoss=false",
            details={"group": group, "partition": partition, "first_offset": lost[0], "next_offset": lost[1]},
        )
    open_log(wanted=True)
    _log.warning("%s; failOnDataLoss=false: the rest is read", text)
