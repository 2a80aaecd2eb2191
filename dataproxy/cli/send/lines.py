"""Reading the lines of a file descriptor, many at a time."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Final

from dataproxy.errors import InvalidMessageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["delimiter_bytes", "read_lines"]

_LOOK_SECONDS: Final = 1.0  # until a pipe that does not block is read again without news
_CHUNK_BYTES: Final = 1 << 20


def delimiter_bytes(text: str) -> bytes:
    r"""Return the delimiter that a text means; ``\n``, ``\t``, ``\0`` and ``\xNN`` are understood.

    Raises ValueError for an empty or malformed delimiter.
    """
    raw = text.encode().decode("unicode_escape").encode("latin-1") if text.isascii() else text.encode()
    if not raw:
        raise ValueError("a delimiter cannot be empty")
    return raw


def read_lines(descriptor: int, delimiter: bytes, longest: int) -> Iterator[list[bytes]]:
    """Yield lists of the lines that a descriptor gives, without their delimiters; empty lines are included.

    What follows the last delimiter counts as a line unless it is empty.  Raises InvalidMessageError (code
    BODY_TOO_LARGE) when more than ``longest`` bytes come without a delimiter.
    """
    rest = b""
    count = 0
    while chunk := _read(descriptor):
        lines = (rest + chunk).split(delimiter)
        rest = lines.pop()
        if lines:
            count += len(lines)
            yield lines
        if len(rest) > longest:
            raise InvalidMessageError(
                f"line {count + 1} has more than {longest} bytes",
                code="BODY_TOO_LARGE",
                hint="check the delimiter, or raise max_frame_bytes here and on the proxies",
                details={"line": count + 1, "limit": longest},
            )
    if rest:
        yield [rest]


def _read(descriptor: int) -> bytes:
    """Return the next bytes, also of a pipe that another program has made not to block; empty at the end."""
    while True:
        try:
            return os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            select.select([descriptor], [], [], _LOOK_SECONDS)
