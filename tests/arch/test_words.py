"""Words that gave way to the field's own terms (docs/glossary.md) do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.arch.sources import tracked

ROOT = Path(__file__).parents[2]
TEXT = {".py", ".pyx", ".pxd", ".pyi", ".h", ".md", ".toml", ".sh", ".patch", ""}
LEFT_OUT = ("benchmarks/results", "benchmarks/profiles", "tests/arch/test_words.py")
CORE = "cython_ext/dataproxy/_core"
#: Old word -> (the term in its place, files in which the word means something else, the only folders it is kept out of
#: or none for all).
WORDS = {
    r"errands?": ("worker thread", (), ()),
    r"bells?|hasten": ("loop notifier, seal_soon", (), ()),
    r"leftovers?": ("undelivered buffer, undelivered pack", (), ()),
    r"books": ("accounting, or counts", (), ()),
    r"lanes?": ("key queue", (f"{CORE}/base/snappy/blockmap", "tests/unit/base/test_blockmap"), ()),
    r"doors?": ("server loop, listener, Manager server, hub client", ("benchmarks/notes",), ()),
    r"links?": (
        "connection",
        ("tests/native/probe_remoting",),  # links of lists
        (*(f"{CORE}/{part}/" for part in ("conn", "net", "pack", "producer")), "tests/native/", "tests/unit/conn/"),
    ),
    r"facts|receipts?": (
        "fields of a result, result",
        (f"{CORE}/producer/ingest/columnar/tablesend",),
        (f"{CORE}/producer/",),
    ),
    r"verdicts?": ("result, or answer", (), (f"{CORE}/",)),
}


def old_words(root: Path) -> list[str]:
    """Return the lines and file names that hold an old word, alone or as a part of an identifier."""
    found = []
    rules = {
        term: (re.compile(rf"(?<![a-z])(?:_*)(?:{word})(?![a-z])", re.IGNORECASE), others, within)
        for word, (term, others, within) in WORDS.items()
    }
    for path in tracked(root):
        below = path.relative_to(root).as_posix()
        if path.suffix not in TEXT or below.startswith(LEFT_OUT) or path.stat().st_size > 1 << 20:
            continue
        for term, (pattern, others, within) in rules.items():
            if below.startswith(others) or (within and not below.startswith(within)):
                continue
            if pattern.search(path.stem):
                found.append(f"{below}: the file's name; say {term}")
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{below}:{number}: {line.strip()[:80]}; say {term}")
    return found


def test_no_old_word_is_left():
    assert old_words(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/x.md", "# The books\n"),
        ("dataproxy/x.py", "self._books = None\n"),
        (f"{CORE}/pack/x.pxd", "cdef void lane_enter(KeyQueue* q)\n"),
        ("dataproxy/producer/errands.py", ""),
        ("docs/x.md", "Bell.hasten wakes them.\n"),
        ("tests/campaigns/planted/x.patch", "+    leftovers_open(&g.l)\n"),
        ("dataproxy/hub/x.py", "self._door = None\n"),
        (f"{CORE}/conn/x.pyx", "cdef Link* link = NULL\n"),
        (f"{CORE}/producer/receipts.pyx", ""),
    ],
)
def test_an_old_word_is_found(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert len(old_words(tmp_path)) == 1


def test_other_words_are_accepted(tmp_path):
    (tmp_path / "x.py").write_text("notebooks = bookworm = 'planes, belly, bellow, indoors, a link, facts'\n")
    assert old_words(tmp_path) == []
