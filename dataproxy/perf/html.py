"""The report as one HTML file that fetches nothing, made from a result alone."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from dataproxy.perf.charts import charts_of, svg
from dataproxy.perf.report import text_report, verdict_line
from dataproxy.shown import printable

if TYPE_CHECKING:
    from dataproxy.perf.result import Result

__all__ = ["html_report"]

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
