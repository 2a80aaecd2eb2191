"""The tables of docs/migration.md: every option name of the official SDKs, and what stands for it here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.config.option import OptionTable

__all__ = ["PAGE", "with_tables"]

#: The page that has the tables, each below a line with the SDK's name.
PAGE: Final = "docs/migration.md"

_TABLE: Final = re.compile(r"(<!-- options: (.+?) -->\n).*?(<!-- end of options -->\n)", re.DOTALL)


def with_tables(page: str, table: OptionTable) -> str:
    """Return the page with its tables written anew; the text around them stays."""
    return _TABLE.sub(lambda found: f"{found[1]}{_rows(table, found[2])}{found[3]}", page)


def _rows(table: OptionTable, sdk: str) -> str:
    lines = ["| name there | here |", "|---|---|", *_aliases(table, sdk), *_refusals(table, sdk)]
    return "\n".join(lines) + "\n"


def _aliases(table: OptionTable, sdk: str) -> Iterator[str]:
    for alias in table.aliases:
        if sdk in alias.sdks:
            yield f"| `{alias.name}` | {alias.meaning} |"


def _refusals(table: OptionTable, sdk: str) -> Iterator[str]:
    for refusal in table.refusals:
        if sdk in refusal.sdks:
            yield f"| `{refusal.name}` | left out: {refusal.reason} |"
