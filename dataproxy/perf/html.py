"""The report as one HTML file that fetches nothing, made from a result alone."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, Final

from dataproxy.perf.charts import Chart, Line, svg
from dataproxy.perf.report import text_report, verdict_line
from dataproxy.shown import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataproxy.perf.result import Result, Second

__all__ = ["charts_of", "html_report", "percentile_curve"]

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem } h2 { font-size: 1.05rem; margin-top: 2rem }
.verdict { padding: .6rem 1rem; border-left: .4rem solid #009e73; background: #f3f7f5 }
.verdict.bad { border-color: #d55e00; background: #fbf2ec }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto }
svg { width: 100%; height: auto; margin: .8rem 0 } svg text { font: 11px system-ui, sans-serif; fill: #444 }
svg text.title { font-weight: 600; font-size: 13px; fill: #1a1a1a } .grid { stroke: #e3e3e3 }
table { border-collapse: collapse } td:first-child { color: #555 }
td { padding: .15rem 1rem .15rem 0; vertical-align: top }
"""
#: Places of the percentile curve, and the texts below it.
_CURVE: Final = (0.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_STEPS: Final = 60
_MIB: Final = 1 << 20


def html_report(result: Result) -> str:
    """Return a whole HTML page: verdict, report, charts, and everything that is needed to run it again."""
    kind = "verdict bad" if result.invalid or result.closed else "verdict"
    charts = "\n".join(filter(None, map(svg, charts_of(result))))
    title = printable(f"Load test of {result.load['target']}, {result.started}")
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{_STYLE}</style></head>
<body>
<h1>{escape(title)}</h1>
<p class="{kind}">{escape(verdict_line(result))}</p>
<pre>{escape(text_report(result))}</pre>
<h2>Charts</h2>
{charts}
<h2>Load</h2>
{_table(result.load)}
<h2>Options of the producer</h2>
{_table(result.options) if result.options else "<p>All have their defaults.</p>"}
<h2>Machine</h2>
{_table(result.machine)}
</body>
</html>
"""


def charts_of(result: Result) -> list[Chart]:
    """Return the charts of a result; those that show latencies are left out where the run is not valid."""
    series = result.series

    def line(name: str, value: Callable[[Second], float | None]) -> Line:
        return Line(name, [(second.at, value(second)) for second in series])

    def ms(value: float | None) -> float | None:
        return None if value is None else value * 1000

    out = [
        Chart("messages a second", "seconds", [
            line("due", lambda s: s.due / s.seconds), line("results", lambda s: s.results / s.seconds)]),
    ]  # fmt: skip
    if not result.invalid:
        out += [
            Chart("latency of the results of each second, ms", "seconds", [
                line("p50", lambda s: ms(s.p50)), line("p99", lambda s: ms(s.p99)), line("p99.9", lambda s: ms(s.p999)),
                line("max", lambda s: ms(s.max))]),
            percentile_curve(result),
            Chart("p99 of each second, ms, against its rate", "results a second", [
                Line("p99", [(s.results / s.seconds, ms(s.p99)) for s in series if s.results])], dots=True),
        ]  # fmt: skip
    out += [
        Chart("messages in flight", "seconds", [line("in flight", lambda s: s.in_flight)]),
        Chart("attempts beyond the first, so far", "seconds", [line("retries", lambda s: s.retries)]),
        Chart("processor, cores", "seconds", _with_hub(series, line("sender", lambda s: s.cpu),
              line("hub", lambda s: s.hub_cpu))),
        Chart("memory, MiB", "seconds", _with_hub(series, line("sender", lambda s: s.memory / _MIB),
              line("hub", lambda s: None if s.hub_memory is None else s.hub_memory / _MIB))),
    ]  # fmt: skip
    if any(second.hub_stored is not None for second in series):
        out.append(Chart("stored by the hub, messages", "seconds", [line("stored", lambda s: s.hub_stored)]))
    return out


def _with_hub(series: Iterable[Second], own: Line, hub: Line) -> list[Line]:
    return [own, hub] if any(second.hub_cpu is not None for second in series) else [own]


def percentile_curve(result: Result) -> Chart:
    """Return latency over percentile; each step to the right has a tenth of the samples of the one before it.

    It ends where less than one sample is left.
    """
    n = max(len(result.latencies), 1)
    end = max(math.log10(n), 0.1)
    places = [end * step / _STEPS for step in range(_STEPS + 1)]
    points = [(place, (result.percentile(100 - 100 * 10**-place) or 0) * 1000) for place in places]
    ticks = [(-math.log10(1 - percent / 100), f"{percent:g} %") for percent in _CURVE]
    return Chart("latency by percentile, ms", "percent of the messages", [Line("latency", points)], ticks=ticks)


def _table(values: dict[str, Any]) -> str:
    rows = (
        f"<tr><td>{escape(printable(str(name)))}</td><td>{escape(printable(_shown(value)))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table>{''.join(rows)}</table>"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
