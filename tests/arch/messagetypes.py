"""Message types belong to the wires: no other layer asks which one it has."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["asked_types"]

ASKED = re.compile(
    r"\b(?:msg_type|message_type|messageType)\b[\"'\])]*\s*(?:==|!=|<|>|(?:not )?in\b)"
    r"|\b(?:rules|spec)\.family\s*(?:==|!=)|(?:==|!=)\s*(?:\w+\.)+(?:msg_type|message_type)\b"
    r"|\bTYPE_(?:LINES|ITEMS|PAIRS|BINARY\w*|HEARTBEAT)\b"
)
#: Who may: the wires, the reader of frames for people, and the two modules that say it to Python.
MAY = ("cython_ext/dataproxy/_core/wire/", "dataproxy/wire/", "dataproxy/messagetypes.py", "dataproxy/numbers.py")


def asked_types(root: Path) -> list[str]:
    """Return every line of the package below ``root`` that compares or names a message type outside the wires."""
    found = []
    for folder in ("cython_ext", "dataproxy", "inlong_dataproxy", "pyspark_dataproxy", "pyspark_tubemq"):
        for path in sorted((root / folder).rglob("*.p*")):
            own = path.relative_to(root).as_posix()
            if path.suffix not in (".py", ".pyi", ".pyx", ".pxd") or own.startswith(MAY):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                code = line.split("#")[0]
                if ASKED.search(code):
                    found.append(f"{own}:{number}: asks for the message type; ask wire/api or dataproxy.messagetypes")
    return found
