"""The plan of a batch: ranges of offsets, decided once on the driver, so that later messages are not in it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataproxy.consumer.ranges.bounds import find_bounds
from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.keeping import GroupKeeper
from dataproxy.consumer.ranges.places import find_places
from dataproxy.consumer.ranges.reader import INDEX_BYTES, Lost
from dataproxy.consumer.ranges.registering import Client
from dataproxy.errors import ConfigError
from dataproxy.spark.driverlog import open_log
from dataproxy.spark.tubemq.offsets import EARLIEST, LATEST, STORED, known_bound, split_range
from dataproxy.spark.tubemq.options import SourceSettings, source_settings
from dataproxy.spark.tubemq.ranges import TopicRange, tell_lost
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataproxy.consumer.ranges.bounds import Bounds
    from dataproxy.consumer.ranges.places import Place

__all__ = ["BatchPlan", "divided", "plan_batch"]


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Everything that tasks need for a batch."""

    settings: SourceSettings
    ranges: tuple[TopicRange, ...]


def plan_batch(options: Mapping[str, str]) -> BatchPlan:
    """Check the options, ask for the bounds of all partitions, and return the ranges to read.

    Raises ConfigError for options, topics and offsets, OffsetsLostError for offsets that are not there any more,
    TransportError if masters or brokers cannot be asked, RemoteProtocolError for answers that are none of TubeMQ's
    protocol, GroupRefusedError if stored offsets are wanted of a group that another reader has.
    """
    with sparks_words():
        settings = source_settings(options, stream=False)
        places = find_places(settings.config)
        with Calls(settings.config) as calls:
            bounds = find_bounds(Client(calls, settings.config), settings.config.group, places.values())
        words = {EARLIEST: {key: one.first for key, one in bounds.items()}}
        words[LATEST] = {key: one.end for key, one in bounds.items()}
        if settings.start.needs_stored or settings.end.needs_stored:
            with closing(GroupKeeper(settings.config, settings.group_wait)) as keeper:
                words[STORED] = {key: one.offset for key, one in keeper.look(places.values()).items()}
        begins, ends = known_bound(settings.start, places, words), known_bound(settings.end, places, words)
        open_log(wanted=True)
        ranges = [_within(settings, place, begins[key], ends[key], bounds[key]) for key, place in places.items()]
        return BatchPlan(settings, tuple(divided([one for one in ranges if one], settings.min_partitions)))


def _within(settings: SourceSettings, place: Place, begin: int, end: int, has: Bounds) -> TopicRange | None:
    """Return the part of the range that the store has, None for nothing."""
    if end < begin <= has.end:
        raise ConfigError(
            f"of partition {place.key} the offsets {begin} to {end} were requested, but the start is after the end",
            hint="check startingOffsets and endingOffsets",
        )
    if begin < min(end, has.first) or max(begin, end) > has.end:
        tell_lost(Lost(place, begin, end, has.first, has.end), fail=settings.fail_on_loss)
    begin, end = max(begin, has.first), min(end, has.end)
    return TopicRange(place, begin, end) if begin < end else None


def divided(ranges: list[TopicRange], wanted: int) -> list[TopicRange]:
    """Return ranges, divided where partitions have their stores for themselves until there are as many as wanted."""
    counts = {id(one): (one.end - one.begin) // INDEX_BYTES for one in ranges if one.begin is not None}
    missing = wanted - len(ranges)
    can = [one for one in ranges if one.place.alone and id(one) in counts]
    total = sum(counts[id(one)] for one in can)
    if missing <= 0 or not total:
        return ranges
    found = []
    for one in ranges:
        parts = 1 + (missing * counts[id(one)] + total - 1) // total if one in can else 1
        if one.begin is None or parts == 1:
            found.append(one)
        else:
            found += [TopicRange(one.place, *pair) for pair in split_range(one.begin, one.end, parts)]
    return found
