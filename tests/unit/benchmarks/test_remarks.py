"""Remarks on the results: one claim, one number and one link each, and every link leads to a heading."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks"
LINK = re.compile(r"\((notes/[\w-]+\.md)#([\w-]+)\)")
FINDINGS = [line for line in (FOLDER / "REMARKS.md").read_text().splitlines() if line.startswith("- ")]


def anchor(heading: str) -> str:
    """Return the name of a heading in links, as code hosts make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_has_a_number_and_one_link(finding):
    (link,) = LINK.finditer(finding)
    note, place = link.groups()
    assert re.search(r"\d", finding[: link.start()])
    headings = re.findall(r"^## (.+)$", (FOLDER / note).read_text(), re.MULTILINE)
    assert place in map(anchor, headings)


def test_each_part_of_each_note_has_a_finding():
    linked = {link for finding in FINDINGS for link in LINK.findall(finding)}
    there = {
        (f"notes/{path.name}", anchor(heading))
        for path in (FOLDER / "notes").glob("*.md")
        for heading in re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE)
    }
    assert there == linked


def test_notes_are_named_by_date():
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d-[a-z-]+\.md", path.name) for path in (FOLDER / "notes").iterdir())


def test_the_page_of_results_repeats_the_remarks():
    assert (FOLDER / "REMARKS.md").read_text().rstrip() in (FOLDER / "RESULTS.md").read_text()
