"""Bodies of a load: of one size, of drawn sizes, or the lines of a file."""

from __future__ import annotations

import random
import re
from typing import Final

from dataproxy.errors import ConfigError

__all__ = ["DRAWN", "make_bodies", "read_lines"]

#: Number of different bodies with random sizes; after these they repeat.
DRAWN: Final = 4096
_MOST: Final = 16 << 20
_MOST_LINES_BYTES: Final = 256 << 20
_UNIFORM: Final = re.compile(r"(\d+)-(\d+)")
_EXPONENTIAL: Final = re.compile(r"exp:(\d+)")


def make_bodies(size: str, seed: int) -> list[bytes]:
    """Return bodies of ``size``: ``N`` bytes each, ``N-M`` for random sizes between, ``exp:MEAN`` for a long tail.

    They hold random letters and digits, which compress about as text with few repetitions does.  Raises ConfigError.
    """
    source = random.Random(seed)
    if size.isdecimal():
        sizes = [int(size)] * 64
    elif found := _UNIFORM.fullmatch(size):
        low, high = int(found[1]), int(found[2])
        if low > high:
            raise ConfigError(f"size {size!r} has the larger number first", hint="write the smaller number first")
        sizes = [source.randint(low, high) for _ in range(DRAWN)]
    elif found := _EXPONENTIAL.fullmatch(size):
        mean = max(int(found[1]), 1)
        sizes = [min(max(round(source.expovariate(1 / mean)), 1), _MOST) for _ in range(DRAWN)]
    else:
        raise ConfigError(f"size {size!r} is unknown", hint="write e.g. 100, 50-500, or exp:200")
    if min(sizes) < 1 or max(sizes) > _MOST:
        raise ConfigError(
            f"size {size!r} is outside of the allowed sizes of a body", hint=f"choose 1 to {_MOST:,} bytes"
        )
    return _filled(sizes, source)


def _filled(sizes: list[int], source: random.Random) -> list[bytes]:
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    pool = bytes(letters[byte & 63] for byte in source.randbytes(65_536))
    out = []
    for size in sizes:
        at = source.randrange(len(pool))
        out.append((pool[at:] + pool * (size // len(pool) + 1))[:size])
    return out


def read_lines(file: str) -> list[bytes]:
    """Return the lines of a file without their ends, empty ones left out.  Raises ConfigError."""
    try:
        with open(file, "rb") as stream:  # noqa: PTH123
            data = stream.read(_MOST_LINES_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"--lines {file!r} cannot be read: {error.strerror or error}") from None
    if len(data) > _MOST_LINES_BYTES:
        raise ConfigError(f"--lines {file!r} is larger than 256 MiB", hint="give a part of it: lines are used in turn")
    lines = [line for line in data.split(b"\n") if line]
    if not lines:
        raise ConfigError(f"--lines {file!r} has no line that is not empty")
    return lines
