"""What the driver of a stream knows of its topics: partitions, their ends, and where the query is.  No Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dataproxy.consumer.ranges.bounds import find_bounds
from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.keeping import GroupKeeper
from dataproxy.consumer.ranges.places import find_places
from dataproxy.consumer.ranges.reader import Lost
from dataproxy.consumer.ranges.registering import Client
from dataproxy.errors import DataProxyError, TransportError
from dataproxy.logs import logger
from dataproxy.spark.driverlog import open_log
from dataproxy.spark.tubemq.offsets import EARLIEST, LATEST, STORED, known_bound, limited
from dataproxy.spark.tubemq.plan import divided
from dataproxy.spark.tubemq.ranges import TopicRange, tell_lost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataproxy.consumer.ranges.places import Place
    from dataproxy.consumer.ranges.registering import Registered
    from dataproxy.spark.tubemq.options import SourceSettings

__all__ = ["Following"]

_log = logger("spark.tubemq")


class Following:
    """Follow topics for one query, which has their group for itself.  One thread.

    ``clock`` gives seconds.  Raises ConfigError for files of TLS that cannot be used.
    """

    def __init__(self, settings: SourceSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._keeper = GroupKeeper(settings.config, settings.group_wait)
        self._places: dict[str, Place] = {}
        self._listed = -1e9  # when
        self._looked = False
        self._initial: dict[str, int] | None = None
        self._stored: dict[str, int] = {}
        self._last: dict[str, int] | None = None  # where the query ends, if it does
        self.newest: dict[str, int] | None = None  #: where the topics ended at the last look
        open_log(wanted=True)

    def initial(self) -> dict[str, int]:
        """Return where a new query begins; the same each time."""
        if self._initial is None:
            start, looked = self._settings.start, self._look(all_of_them=True)
            words = {
                LATEST: {key: one.end for key, one in looked.items()},
                STORED: {key: one.offset for key, one in looked.items()},
            }
            words[EARLIEST] = self._firsts(looked)
            self._initial = known_bound(start, looked, words)
            for key, begin in self._initial.items():
                place, end = self._places[key], looked[key].end
                first = words[EARLIEST][key]
                if not first <= begin <= end:
                    tell_lost(Lost(place, begin, end, first, end), fail=self._settings.fail_on_loss)
                    self._initial[key] = min(max(begin, first), end)
        return dict(self._initial)

    def latest(self, start: Mapping[str, int] | None, most: int) -> dict[str, int]:
        """Return where the next batch ends, with at most so many offsets behind ``start``; 0: no limit."""
        looked = self._look()
        ends = {key: one.end for key, one in looked.items()}
        self.newest = dict(sorted(ends.items()))
        if self._last is not None:
            ends = {key: min(end, self._last[key]) for key, end in ends.items() if key in self._last}
        if start is None:
            return dict(sorted(ends.items()))
        for key, begin in start.items():
            if key not in ends:  # its broker is away, or no master tells it
                ends[key] = begin
            elif ends[key] < begin and key in looked and looked[key].end < begin:
                end = looked[key].end
                tell_lost(Lost(self._places[key], begin, begin, 0, end), fail=self._settings.fail_on_loss)
            else:
                ends[key] = max(ends[key], begin)
        if most:
            new = {key: one for key, one in looked.items() if key not in start and key in ends}
            ends = limited({**self._firsts(new), **start}, ends, most)
        return dict(sorted(ends.items()))

    def stop_at_newest(self) -> None:
        """Let the query end where the topics end now."""
        self._last = {key: one.end for key, one in self._look().items()}

    def ranges(self, start: Mapping[str, int], end: Mapping[str, int]) -> Iterator[TopicRange]:
        """Yield the ranges between two offsets; a partition that the first does not have begins at its oldest message.

        Raises TransportError for a partition that no master tells.
        """
        if not self._looked:
            self._look()  # a batch that is run again after a restart comes before anything else
        wanted = [key for key in sorted(end) if start.get(key, -1) < end[key]]
        if any(key not in self._places for key in wanted):
            self._list()
        found = []
        for key in wanted:
            place = self._places.get(key)
            if place is not None:
                found.append(TopicRange(place, start.get(key), end[key]))
                continue
            text = f"the checkpoint has the offsets {start.get(key, 0)} to {end[key]} of {key}, which no master tells"
            if self._settings.fail_on_loss:
                raise TransportError(
                    text,
                    code="NO_BROKER",
                    hint="its broker is away, its topic takes no messages now, or 'topics' has changed;"
                    " failOnDataLoss=false passes it over",
                    details={"partition": key},
                )
            _log.warning("%s; failOnDataLoss=false: they are passed over", text)
        yield from divided(found, self._settings.min_partitions)

    def store(self, end: Mapping[str, int]) -> None:
        """Let the group's stored offsets follow."""
        moved = {key: offset for key, offset in end.items() if self._stored.get(key) != offset}
        for key in self._keeper.store(moved, self._places):
            self._stored[key] = moved[key]

    def close(self) -> None:
        """Give the group back."""
        self._keeper.close()

    def _list(self) -> None:
        """Ask a master for partitions; those that it does not tell any more are kept, as their brokers may be there."""
        self._places.update(find_places(self._settings.config))
        self._listed = self._clock()

    def _look(self, *, all_of_them: bool = False) -> dict[str, Registered]:
        if not self._places:
            self._list()
        elif self._clock() - self._listed >= self._settings.listing_interval:
            try:
                self._list()
            except DataProxyError as error:  # brokers give messages without a master
                _log.warning("no new partitions are looked for: %s", error)
                self._listed = self._clock()
        looked = self._keeper.look(self._places.values())
        missing = sorted(self._places.keys() - looked.keys())
        if missing and all_of_them:
            raise TransportError(
                f"partitions {', '.join(missing)} cannot be asked where they begin: their broker is away",
                code="NO_BROKER",
                hint="start the query when all brokers are there",
                details={"partitions": missing},
            )
        self._looked = True
        return looked

    def _firsts(self, looked: Mapping[str, Registered]) -> dict[str, int]:
        """Return where the stores of partitions begin."""
        if not looked:
            return {}
        config = self._settings.config
        with Calls(config) as calls:
            found = find_bounds(Client(calls, config), config.group, [self._places[key] for key in looked])
        return {key: one.first for key, one in found.items()}
