"""The tables of docs/migration.md have every name of every SDK, and text around them is kept."""

from pathlib import Path

import pytest

from dataproxy.config import PRODUCER
from dataproxy.config.migration import PAGE, with_tables

ROOT = Path(__file__).parents[3]
TEXT = "before\n<!-- options: Go -->\nold\n<!-- end of options -->\nafter\n"


def section(page: str, sdk: str) -> str:
    return page.split(f"<!-- options: {sdk} -->\n")[1].split("<!-- end of options -->")[0]


@pytest.mark.parametrize("sdk", ["C++ 2022", "C++ 2026 and Python", "Java", "Go"])
def test_the_page_is_current_and_has_every_name(sdk):
    page = (ROOT / PAGE).read_text()
    assert with_tables(page, PRODUCER) == page
    rows = section(page, sdk)
    names = {entry.name for entry in (*PRODUCER.aliases, *PRODUCER.refusals) if sdk in entry.sdks}
    assert {row.split("`")[1] for row in rows.splitlines() if row.startswith("| `")} == names
    assert len(names) > 15


def test_only_what_stands_between_the_marks_is_written():
    page = with_tables(TEXT, PRODUCER)
    assert page.startswith("before\n<!-- options: Go -->\n| name there | here |\n")
    assert page.endswith("<!-- end of options -->\nafter\n")
    assert "old" not in page.splitlines()
    assert "| `MaxRetries` | left out: retries are limited by time" in page


def test_a_page_without_marks_is_left_alone():
    assert with_tables("# A page\n", PRODUCER) == "# A page\n"
