"""The result of a run, as an object and as JSON, from which every report can be made again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from dataproxy._core.perf.histogram import Histogram
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PERCENTS", "SCHEMA", "Percentile", "Result", "Second", "read_result"]

SCHEMA: Final = "dataproxy.perf/1"
#: Percentiles that reports show.
PERCENTS: Final = (50.0, 90.0, 99.0, 99.9, 99.99)
#: Percentiles at which the generator's own lateness is checked.
_JUDGED: Final = (50.0, 90.0, 99.0)
#: The largest allowed share of the generator's own lateness in a latency.
_SHARE: Final = 0.1

# Types of numbers in JSON, which people may have edited.
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
_Number = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]  # within this range, floats represent steps of 1 exactly
_Span = Annotated[float, msgspec.Meta(gt=0, le=1e12)]


@dataclass(frozen=True, slots=True)
class Percentile:
    """Hold a percentile in seconds; ``behind`` is the number of larger samples."""

    percent: float
    seconds: float
    behind: int


@dataclass(frozen=True, slots=True)
class Second:
    """Describe one second of a run: messages a second, latencies (s) of its results, state at its end.

    ``cpu`` is in cores, ``memory`` in bytes, of the process that sends; ``hub_*`` are None without a hub.
    """

    at: _Number
    seconds: _Span
    due: _Count
    accepted: _Count
    results: _Count
    p50: _Number | None
    p99: _Number | None
    p999: _Number | None
    max: _Number | None
    lag: _Number | None
    in_flight: _Count
    retries: _Count
    cpu: _Number
    memory: _Count
    hub_stored: _Count | None = None
    hub_cpu: _Number | None = None
    hub_memory: _Count | None = None


@dataclass(slots=True)
class Result:
    """Hold all results of a run.

    ``counts`` are messages by outcome, ``latencies`` the times (us) from the planned moment of each to its result,
    ``lags`` how late (us) the generator itself sent each.  ``max_lag`` (s) is the lateness that is always
    allowed.  ``stopped`` names the interruption that ended the run before the end of its
    plan, empty without one.  ``stored`` is how many messages the hub has stored, None without a hub.
    """

    started: str
    load: dict[str, Any]
    options: dict[str, Any]
    machine: dict[str, Any]
    planned: float
    seconds: float
    max_lag: float
    counts: dict[str, Any]
    stored: int | None
    stopped: str
    latencies: Histogram = field(repr=False)
    lags: Histogram = field(repr=False)
    series: list[Second] = field(repr=False)

    @property
    def closed(self) -> bool:
        """Tell whether it was a closed loop."""
        return bool(self.load.get("closed_loop"))

    @property
    def rate(self) -> float:
        """Return the messages a second that were delivered, or sent, from the start to the last result."""
        return float(self.good) / self.seconds if self.seconds > 0 else 0.0

    @property
    def good(self) -> int:
        """Return how many messages were delivered, or sent where no answer was asked for."""
        return int(self.counts["delivered"]) + int(self.counts.get("sent", 0))

    def percentile(self, percent: float) -> float | None:
        """Return the latency in seconds at a percentile from 0 to 100; None without results."""
        found = self.latencies.percentile(percent)
        return None if found is None else found / 1e6

    def percentiles(self) -> list[Percentile]:
        """Return the percentiles of the report, each with the samples behind it."""
        out = []
        for percent in PERCENTS:
            found = self.latencies.percentile(percent)
            if found is not None:
                behind = self.latencies.above(found)
                out.append(Percentile(percent, found / 1e6, behind))
        return out

    @property
    def invalid(self) -> list[str]:
        """Return the reasons why the run is not valid; empty if it is valid.

        The generator's lateness is part of each latency.  Where it is more than a tenth of it at the same percentile,
        and more than ``max_lag``, the percentile shows the generator and not the target.
        """
        if self.closed:
            return []
        if not len(self.latencies):
            return ["no message has a result"]
        out = []
        for percent in _JUDGED:
            lag, latency = self.lags.percentile(percent), self.latencies.percentile(percent)
            if lag is not None and latency is not None and lag > max(self.max_lag * 1e6, _SHARE * latency):
                out.append(
                    f"at p{percent:g} the generator itself was {lag / 1000:,.1f} ms late "
                    f"(allowed: {max(self.max_lag * 1e6, _SHARE * latency) / 1000:,.1f} ms)"
                )
        return out

    @property
    def lost(self) -> int:
        """Return how many accepted messages were neither delivered nor sent."""
        return int(self.counts["accepted"]) - self.good

    @property
    def missing(self) -> int:
        """Return how many delivered or sent messages the hub has not stored; 0 without a hub."""
        return max(self.good - self.stored, 0) if self.stored is not None else 0

    def as_json(self) -> dict[str, Any]:
        """Return everything as an object for JSON, with the schema's name in front."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["latencies"] = [list(pair) for pair in self.latencies.counts()]
        values["lags"] = [list(pair) for pair in self.lags.counts()]
        values["series"] = [asdict(second) for second in self.series]
        return {"schema": SCHEMA, **values, "invalid": self.invalid}


class _LoadFields(msgspec.Struct):
    """The fields of a load that reports show."""

    target: str
    plan: str
    arrivals: str
    seed: int
    group: str
    path: str
    threads: _Count
    streams: _Count
    size: str
    batch: _Count


class _CountFields(msgspec.Struct):
    """The counts that reports show."""

    due: _Count
    accepted: _Count
    refused: _Count
    delivered: _Count
    failed: _Count
    expired: _Count
    dropped: _Count
    pending: _Count
    retries: _Count
    blocked: _Number
    sent: _Count = 0  # older results lack it


class _Fields(msgspec.Struct):
    """The types of a result's fields in JSON."""

    started: str
    load: _LoadFields
    options: dict[str, Any]
    machine: dict[str, Any]
    planned: _Number
    seconds: _Number
    max_lag: _Number
    counts: _CountFields
    stored: _Count | None
    stopped: str
    latencies: list[tuple[_Count, _Count]]
    lags: list[tuple[_Count, _Count]]
    series: list[Second]


def read_result(text: str | bytes) -> Result:
    """Return the result that ``as_json`` wrote.  Raises ConfigError for anything else."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"this is not a complete result of a load test: {error}") from None
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        raise ConfigError(f"this is not the result of a load test: its schema is not {SCHEMA!r}")
    try:
        msgspec.convert(values, _Fields)
        return _result_of(values)
    except (msgspec.ValidationError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ConfigError(f"this is not a complete result of a load test: {error}") from None


def _result_of(values: Mapping[str, Any]) -> Result:
    names = [name for name in Result.__slots__ if name not in ("latencies", "lags", "series")]
    return Result(
        **{name: values[name] for name in names},
        latencies=Histogram.of_counts((value, times) for value, times in values["latencies"]),
        lags=Histogram.of_counts((value, times) for value, times in values["lags"]),
        series=[Second(**second) for second in values["series"]],
    )
