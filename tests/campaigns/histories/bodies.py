"""Bodies that say what they are: who sent them, which number and key they have, and whether a byte of them changed."""

from __future__ import annotations

import zlib
from typing import NamedTuple

__all__ = ["LEAST", "Body", "make_body", "read_body"]

#: Most bytes that the describing part takes beside producer and key.
LEAST = 32
_FILL = b"The quick brown fox jumps over the lazy dog 0123456789 "


class Body(NamedTuple):
    """Say what a body says of itself; ``intact`` is false when its checksum does not hold."""

    producer: str
    sequence: int
    key: str
    digest: int
    intact: bool


def make_body(producer: str, sequence: int, key: str = "", size: int = 0, mark: bytes = b"") -> bytes:
    """Return a body of at least ``size`` bytes: ``producer sequence key checksum``, ``mark`` and filling text."""
    head = f"{producer} {sequence} {key or '-'} ".encode()
    missing = size - len(head) - 9
    fill = b""
    if missing > 0:
        start = sequence % len(_FILL)
        fill = ((_FILL + _FILL)[start:] + _FILL * (missing // len(_FILL) + 1))[:missing]
    fill = mark + fill
    return b"%b%08x %b" % (head, zlib.crc32(head + fill), fill)


def read_body(body: bytes) -> Body | None:
    """Return what a body says, None when it is none of ours."""
    parts = body.split(b" ", 4)
    if len(parts) != 5 or not parts[1].isdigit() or len(parts[3]) != 8:
        return None
    head = body[: len(parts[0]) + len(parts[1]) + len(parts[2]) + 3]
    try:
        said = int(parts[3], 16)
        producer, key = parts[0].decode(), parts[2].decode()
    except ValueError:
        return None
    digest = zlib.crc32(body)
    return Body(producer, int(parts[1]), "" if key == "-" else key, digest, zlib.crc32(head + parts[4]) == said)
