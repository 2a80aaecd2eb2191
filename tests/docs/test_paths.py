"""Files and folders that the pages about the inside name are there."""

import re

import pytest

from tests.docs.pages import ROOT

CORE = ROOT / "cython_ext" / "dataproxy" / "_core"
PLACES = (ROOT, CORE, *(CORE / name for name in ("server", "wire/inlong")))  # tables name a folder, and then its files
PAGES = ("docs/glossary.md", "docs/internals.md", "docs/reliability.md")


def is_there(path):
    name = path.removeprefix("_core/").rstrip("/")
    return any((place / (name + end)).exists() for place in PLACES for end in ("", ".pyx", ".pxd"))


@pytest.mark.parametrize("page", PAGES)
def test_every_path_is_there(page):
    named = set(re.findall(r"`([A-Za-z_.]+/[\w./-]+)(?:: ?\w+)?`", (ROOT / page).read_text()))
    assert len(named) > 5
    assert [path for path in sorted(named) if not is_there(path)] == []
