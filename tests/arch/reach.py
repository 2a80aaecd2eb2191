"""Whose struct a module may look into: its own layer's, and never the parts of another struct's part."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["reaching"]

CORE = ("cython_ext", "dataproxy", "_core")
#: Where a rule applies (first folders below the core; "" is all of it), what it forbids, and what to do instead.
RULES = (
    (
        ("",),
        re.compile(r"pthread_mutex_lock\(&(?:self\.\w+|(?!self\.)\w+)(?:\.\w+)+\.lock\)"),
        "takes the lock of a part of another struct; call a function of that part",
    ),
    (
        ("producer", "perf"),
        re.compile(r"\b(?:engine|g)\.(?:batcher|accounting|completions|undelivered|spares)\.\w"),
        "uses a field of an engine's part; call a function of that part",
    ),
    (
        ("producer/ingest", "producer/results", "producer/aio"),
        re.compile(r"\bb(?:atcher)?\.(?!lock\b)\w"),
        "uses a field of the batcher; call a function of producer/accumulate",
    ),
    (
        ("server/store/append", "server/store/window/windowlog", "server/store/core", "server/store/txn"),
        re.compile(r"\bdedupe\.(?:window|blocks)\.ring\b"),
        "uses a ring of the de-duplication; call a function of server/store/window/dedupe",
    ),
    (
        ("producer", "perf"),
        re.compile(r"\bexecutors\[[^\]]*\]\.\w|\bexecutor\.pool\b|\be\.pool\b"),
        "uses a field of an executor; call a function of net/executor",
    ),
)
#: The engine joins its parts: it fills in their pointers, and releases what they hold.
JOINS = "producer/engine.pyx"


def reaching(root: Path) -> list[str]:
    """Return every line below ``root/cython_ext`` that reaches into a struct of another struct."""
    core = root.joinpath(*CORE)
    found = []
    for path in sorted([*core.rglob("*.pyx"), *core.rglob("*.pxd")]):
        own = path.relative_to(core).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("#")[0]
            for folders, pattern, text in RULES:
                if own != JOINS and own.startswith(folders) and pattern.search(code):
                    found.append(f"{path.relative_to(root)}:{number}: {text}")
    return found
