"""Load tests: open-loop load by a plan, latencies from each message's planned time, and reports of the results.

Used by ``dataproxy perf``; docs/perf.md explains what the figures mean.

What lives here.  `plan`, `bodies`: when messages are due, and what they hold.  `run`, `loop`: a run, from threads or
from event loops.  `hub`, `watch`: what the hub stored, and what was seen while it ran.  `result`: a run as an object
and as JSON; `report`, `html`, `charts` show it.  `search`, `compare`: many runs; `thresholds`: bounds.
"""

from dataproxy._core.perf.histogram import Histogram
from dataproxy.perf.plan import Piece, Plan, parse_plan
from dataproxy.perf.report import text_report
from dataproxy.perf.result import Percentile, Result, Second, read_result
from dataproxy.perf.run import Load, run_load

__all__ = [
    "Histogram",
    "Load",
    "Percentile",
    "Piece",
    "Plan",
    "Result",
    "Second",
    "parse_plan",
    "read_result",
    "run_load",
    "text_report",
]
