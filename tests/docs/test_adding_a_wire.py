"""docs/adding-a-wire.md names files that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "cython_ext" / "dataproxy" / "_core"
PAGE = ROOT / "docs" / "adding-a-wire.md"


def test_every_path_is_there():
    named = set(re.findall(r"`([A-Za-z_]+/[\w./-]+|\w+\.(?:md|py))`", PAGE.read_text()))
    assert len(named) > 40
    assert [path for path in sorted(named) if not (ROOT / path).exists() and not (CORE / path).exists()] == []


def test_every_place_that_picks_a_wire_is_named():
    picks = {
        path.relative_to(CORE).as_posix()
        for path in CORE.rglob("*.pyx")
        if "wire" not in path.relative_to(CORE).parts and "wire.registry cimport" in path.read_text()
    }
    named = set(re.findall(r"`([\w/]+\.pyx)`", PAGE.read_text()))
    assert picks <= named
