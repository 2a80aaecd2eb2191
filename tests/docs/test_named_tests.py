"""Tests that pages name are there."""

import re

import pytest

from tests.docs.pages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMED = sorted({found for page in PAGES for found in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page.read_text())})


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_a_page_names_is_there(file, name):
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_pages_name_tests():
    assert len(NAMED) >= 15
