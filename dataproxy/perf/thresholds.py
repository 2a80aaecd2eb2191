"""Thresholds for the results of a run, for pipelines that check the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataproxy.config.units import parse_duration
from dataproxy.errors import ConfigError
from dataproxy.perf.report import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataproxy.perf.result import Result

__all__ = ["Thresholds", "parse_thresholds"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Hold the largest latency (s) at some percentiles, and the smallest rate (delivered messages a second)."""

    latencies: dict[float, float]
    rate: float = 0.0

    def problems(self, result: Result) -> list[str]:
        """Return a line for each threshold that the run does not keep; a run that is not valid keeps none."""
        if (self.latencies or self.rate) and result.invalid:
            return ["thresholds cannot be judged: the run is not valid"]
        out = []
        for percent, bound in self.latencies.items():
            found = result.percentile(percent)
            if found is None or found > bound:
                out.append(f"p{percent:g} is {milliseconds(found)}, above {milliseconds(bound)}")
        if result.rate < self.rate:
            out.append(f"{result.rate:,.0f} messages a second were delivered, fewer than {self.rate:,.0f}")
        return out


def parse_thresholds(texts: Iterable[str], rate: float = 0.0) -> Thresholds:
    """Return the thresholds from texts such as ``p99=20ms`` and a rate.  Raises ConfigError."""
    found: dict[float, float] = {}
    for text in texts:
        name, _, bound = text.partition("=")
        try:
            percent, seconds = float(name.strip().removeprefix("p")), parse_duration(bound)
        except ValueError:
            raise ConfigError(f"--max {text!r} is not a bound", hint="write e.g. --max p99=20ms") from None
        if not name.strip().startswith("p") or not 0 <= percent <= 100 or seconds <= 0 or percent in found:
            raise ConfigError(
                f"--max {text!r} is not a bound, or the percentile has two bounds", hint="write e.g. --max p99=20ms"
            )
        found[percent] = seconds
    return Thresholds(found, rate)
