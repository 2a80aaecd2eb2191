"""Write dataproxy/numbers.py: the numbers that the core and Python share, read from the core's enums.

``python tools/numbers.py`` writes the file, ``--check`` only tells whether it is current (exit status 1: it is not).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["main", "rendered"]

ROOT = Path(__file__).resolve().parents[1]
CORE = Path("cython_ext", "dataproxy", "_core")
TARGET = Path("dataproxy", "numbers.py")
#: File, enum, and what its numbers are; of an enum without a name, the names to take.
SHARED: tuple[tuple[str, str, str], ...] = (
    ("pack/pack.pxd", "Outcome", "What became of a message."),
    ("conn/connection.pxd", "LocalCode", "Codes of results that no server gave."),
    ("conn/connection.pxd", "RetryClass", "What follows a server's code."),
    ("conn/connection.pxd", "ConnectionEvent", "Events of a connection."),
    ("conn/connection.pxd", "OutReason", "Details of CE_OUT and CE_RETURNED: why a proxy takes no frames."),
    ("conn/connection.pxd", "SwapReason", "Details of CE_SWAPPED: why a standby came into use."),
    ("conn/replies.pxd", "ForeignProtocol", "Details of CE_PROTOCOL: what the bytes look like."),
    (
        "net/tls.pxd",
        "TlsFault",
        "Details of CE_CONNECT_FAILED and CE_LOST above all errno; each is 4096 wide.",
    ),
    ("producer/accumulate/state.pxd", "NO_TIME", "The data time of a message without one of its own."),
    ("producer/ingest/ids.pxd", "OWN_ID_MAX", "Longest id that a caller may give a message, in bytes."),
    ("wire/inlong/const.pxd", "TYPE_COMMON TYPE_LINES TYPE_BINARY", "Message types that differ in what they carry."),
    ("wire/inlongv1/const.pxd", "FAMILY_V1", "Frames of the V1 protocol."),
    ("wire/inlong/const.pxd", "FAMILY_BINARY_LINES", "Type 7 whose items are joined by line feeds."),
    ("wire/inlong/const.pxd", "FAMILY_REPORT", "Lines in an HTTP report."),
    ("wire/tubemq/const.pxd", "FAMILY_TUBEMQ", "Messages for a partition of a topic."),
    ("wire/tubemq/const.pxd", "BROKER_CODES", "What is added to codes of TubeMQ's brokers."),
)
ENTRY = re.compile(r"^    (\w+) = (-?\w+)\b")
HEAD = '''"""Numbers that the compiled core and Python share.

Written by `python tools/numbers.py` from the enums of the core. Do not edit.
"""

from typing import Final

'''


def _blocks(text: str) -> dict[str, dict[str, int]]:
    """Return the numbers of each enum of a ``.pxd`` by the enum's name; those without a name are under ""."""
    found: dict[str, dict[str, int]] = {"": {}}
    block: dict[str, int] | None = None
    for line in text.splitlines():
        begin = re.match(r"^cdef enum\s*(\w*):", line)
        entry = ENTRY.match(line)
        if begin:
            block = found.setdefault(begin[1], {})
        elif line and not line.startswith(" "):
            block = None
        elif block is not None and entry and re.fullmatch(r"-?(0x)?[0-9A-Fa-f]+", entry[2]):
            block[entry[1]] = int(entry[2], 0)
    return found


def rendered(root: Path) -> str:
    """Return the text of dataproxy/numbers.py for the tree at ``root``.  Raises KeyError for a name that is gone."""
    names: list[str] = []
    parts = []
    for file, wanted, text in SHARED:
        blocks = _blocks((root / CORE / file).read_text())
        some = blocks.get(wanted) or {name: blocks[""][name] for name in wanted.split()}
        names += some
        parts.append(f"# {text}  ({file})\n" + "".join(f"{name}: Final = {number}\n" for name, number in some.items()))
    listed = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n\n"
    return HEAD + listed + "\n".join(parts)


def main(root: Path = ROOT) -> int:
    """Write the file, or with ``--check`` compare it; return the exit status."""
    text = rendered(root)
    path = root / TARGET
    if "--check" in sys.argv[1:]:
        current = path.is_file() and path.read_text() == text
        if not current:
            sys.stderr.write(f"{TARGET} is not current: python tools/numbers.py\n")
        return 0 if current else 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
