"""Tables of the commands for a hub as TubeMQ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataproxy.shown import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["held", "show_table"]


def show_table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table whose first columns have names, which may come from clients, and the others numbers.

    None is shown as "-".
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)), title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row))  # a Text: no markup in names
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width: a row is a line, for grep and its like
        console.width = max(console.width, console.measure(table, options=console.options.update(width=10_000)).maximum)
    console.print(table)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def held(rows: Sequence[dict[str, Any]]) -> str:
    """Return partitions as a text: ``topic:0,1,2 other:0``; beyond a few, how many."""
    by_topic: dict[str, list[int]] = {}
    for row in rows:
        by_topic.setdefault(row["topic"], []).append(row["partition"])
    parts = []
    for topic, numbers in by_topic.items():
        few = ",".join(map(str, numbers[:8]))
        parts.append(f"{topic}:{few}{f' and {len(numbers) - 8} more' if len(numbers) > 8 else ''}")
    return " ".join(parts) or "-"
