"""Fuzz target: items in snappy blocks, walked as they came, compared with walking the unpacked content."""

import random

from tests.fuzz.engine import main
from tests.native.probe_blocks import Block
from tests.native.probe_wire import pack
from tests.support.reference.snappy import lines
from tests.support.reference.vectors import VECTORS

__all__ = ["SEEDS", "check"]

LIMIT = 1 << 20


def frame(size: int, count: int) -> bytes:
    """Return items of text with their lengths."""
    rng = random.Random(size)
    return b"".join(size.to_bytes(4) + lines("text", size, rng.randrange(1 << 32)) for _ in range(count))


SEEDS = [
    *(bytes.fromhex(entry["compressed"]) for entry in VECTORS["snappy"]),
    *(pack(frame(size, count)) for size, count in ((10, 3), (100, 9), (1000, 3), (100, 50), (600, 12))),
]
#: Goes in front of every second input, so that most of it is walked several parts at once.
PREFIX = frame(1000, 60)


def check(data: bytes) -> None:
    """Walk the block in both ways, and a large one with a part that is replaced by it."""
    large = bytearray(pack(PREFIX))
    at = len(data) * 37 % len(large)
    large[at : at + len(data)] = data
    for block in (Block(data), Block(bytes(large))):
        assert block.items(LIMIT) in (None, block.unpacked_items(LIMIT))


if __name__ == "__main__":
    main(check, SEEDS)
