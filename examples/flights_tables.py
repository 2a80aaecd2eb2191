"""The tables that the flights demo prints: rows, counts, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from flights_back import Outcome
    from flights_group import GroupOfTwo

WIDTH = 112


def show(outcome: Outcome, report: dict[str, Any], hub: dict[str, Any], seconds: float) -> None:
    """Print the table of rows and counts.  `seconds` is the time from the first row to the last."""
    table = Table(title="flights through Spark, the sink and the hub's store, and back", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    lines = {
        "rows in the source": f"{outcome.source:,}",
        "streams": f"{outcome.streams:,}",
        "bytes": f"{report['bytes']:,}",
        "rows/s, first row to last": f"{report['rows'] / seconds:,.0f}",
        "bytes/s": f"{report['bytes'] / seconds:,.0f}",
        "rows acknowledged": f"{report['acked']:,}",
        "acks (frames)": f"{hub['entries']:,}",
        "retries (frames)": f"{report['retries']:,}",
        "commits to disk": f"{hub['store']['commits']:,}",
        "duplicates": f"{outcome.duplicates:,}",
        "missing": judged(outcome.missing),
        "changed": judged(outcome.changed),
    }
    for name, value in lines.items():
        table.add_row(name, value)
    table.add_section()
    table.add_row(
        "client", f"{report['rows']:,} read = {report['acked']:,} acknowledged + {report['skipped']:,} skipped"
    )
    table.add_row(
        "hub",
        f"{outcome.stored:,} stored = {outcome.source:,} sent - {outcome.missing:,} missing "
        f"+ {outcome.duplicates:,} duplicates + {outcome.changed:,} changed",
    )
    table.add_row("the counts balance", "[green]yes[/]" if balanced(outcome, report) else "[red]no[/]")
    Console(width=WIDTH, highlight=False).print(table)


def balanced(outcome: Outcome, report: dict[str, Any]) -> bool:
    """Tell whether the client's and the hub's counts balance and agree."""
    expected = outcome.source - outcome.missing + outcome.duplicates + outcome.changed
    return outcome.stored == expected and report["acked"] + report["skipped"] == report["rows"] == outcome.source


def show_stream(outcome: Outcome, rows_at_kill: int, batches: int, hub: dict[str, Any], seconds: float) -> None:
    """Print the stream's counts at the kill, and the contents of the store after the restart."""
    table = Table(title="the same flights as a stream in the order of their time, killed once", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    lines = {
        "rows in the hub when the stream was killed (SIGKILL)": f"{rows_at_kill:,}",
        "micro-batches committed by then": f"{batches}",
        "seconds from the first row to the last, with the restart": f"{seconds:.1f}",
        "rows sent again, known by their ids and not stored": f"{hub['duplicates']:,}",
        "rows in the source": f"{outcome.source:,}",
        "rows stored": f"{outcome.stored:,}",
        "missing": judged(outcome.missing),
        "changed": judged(outcome.changed),
        "stored twice": judged(outcome.duplicates),
    }
    for name, value in lines.items():
        table.add_row(name, value)
    Console(width=WIDTH, highlight=False).print(table)


def show_back(batch: Outcome, stream: Outcome, batches: int, group: Outcome) -> None:
    """Print what came out of the hub as TubeMQ, by who has read it; the stream has read it in so many `batches`."""
    table = Table(title="the same flights out of the hub as TubeMQ, at the end of the circle")
    table.add_column("", style="bold")
    for name in ("spark.read", "spark.readStream", "a group of two"):
        table.add_column(name, justify="right")
    outcomes = (batch, stream, group)
    table.add_row("rows in the source", *(f"{outcome.source:,}" for outcome in outcomes))
    table.add_row("rows read", *(f"{outcome.stored:,}" for outcome in outcomes))
    table.add_row("micro-batches", "", f"{batches}", "")
    for name in ("missing", "changed"):
        table.add_row(name, *(judged(getattr(outcome, name)) for outcome in outcomes))
    table.add_row("read twice", judged(batch.duplicates), judged(stream.duplicates), f"{group.duplicates:,}")
    table.add_row("read twice, though confirmed", "", "", judged(group.unexplained))
    Console(width=WIDTH, highlight=False).print(table)


def show_group(group: GroupOfTwo) -> None:
    """Print the life of the group: the kill, what it left without a confirm, and who has read how much."""
    table = Table(title="the group, one of whose two members was killed", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    left = sum(member.rows for member in group.members if member is not group.killed)
    lines = {
        "rows read when one member was killed (SIGKILL)": f"{group.rows_at_kill:,}",
        "rows that it had read": f"{group.killed.rows if group.killed else 0:,}",
        "rows in packs without an answer to their confirm": f"{sum(group.lost_confirms().values()):,}",
        "seconds until the other one had its partitions": f"{group.takeover_s:.1f}",
        "rows that the other one has read": f"{left:,}",
    }
    for name, value in lines.items():
        table.add_row(name, value)
    Console(width=WIDTH, highlight=False).print(table)


def judged(rows: int) -> str:
    """Return a count that should be 0, in its colour."""
    return f"[{'red' if rows else 'green'}]{rows:,}[/]"
