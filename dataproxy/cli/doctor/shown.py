"""Findings as a table, and below it what each bad one means and what to do."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dataproxy.doctor import Level
from dataproxy.shown import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataproxy.doctor import Finding, Findings

__all__ = ["as_text"]

_STYLES: Final = {Level.OK: "green", Level.NOTE: "cyan", Level.WARNING: "yellow", Level.ERROR: "bold red"}
_WORST_FIRST: Final = (Level.ERROR, Level.WARNING, Level.NOTE)
_WIDE: Final = 2000  # columns of a file or a pipe: each row is one line there
_SHOWN_SUBJECTS: Final = 8
_LEVEL_WIDTH: Final = 7


def as_text(found: Findings) -> str:
    """Return the output for stdout as it is now: its width, its colours if it is a terminal."""
    console = Console()
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        console = Console(width=_WIDE)
    console.begin_capture()
    console.print(_table(found))
    for group in _grouped(found.findings):
        console.print()
        console.print(_block(group))
    return "\n".join(line.rstrip() for line in console.end_capture().split("\n"))


def _table(found: Findings) -> Table:
    title = printable(f"dataproxy doctor {found.target}".strip()) if found.target else "dataproxy doctor: this machine"
    if not found.finished:
        title += " (interrupted)"
    table = Table(title=Text(title), title_justify="left")
    for name in ("", "check", "of", "result"):
        table.add_column(name, overflow="fold")
    for one in found.findings:
        table.add_row(
            Text(str(one.level), style=_STYLES[one.level]),
            Text(one.check),
            Text(printable(one.subject)),
            Text(printable(one.text)),
        )
    return table


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return the findings that have advice, worst first; those with the same words stand together."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for level in _WORST_FIRST:
        for one in findings:
            if one.level is level and (one.means or one.advice):
                groups.setdefault((level, one.check, one.text, one.means, one.advice), []).append(one)
    return list(groups.values())


def _block(group: Sequence[Finding]) -> Table:
    """Return the lines about findings with the same words, behind their level."""
    first = group[0]
    subjects = ", ".join(one.subject for one in group[:_SHOWN_SUBJECTS])
    more = f" and {len(group) - _SHOWN_SUBJECTS} more" if len(group) > _SHOWN_SUBJECTS else ""
    lines = [f"{first.check} {subjects}{more}: {first.text}", first.means, f"-> {first.advice}" if first.advice else ""]
    block = Table.grid(padding=(0, 2))
    block.add_column(min_width=_LEVEL_WIDTH)
    block.add_column(overflow="fold")
    block.add_row(
        Text(str(first.level), style=_STYLES[first.level]), Text("\n".join(printable(line) for line in lines if line))
    )
    return block
