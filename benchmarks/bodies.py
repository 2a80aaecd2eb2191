"""Message bodies for the measurements: the same bytes in every run and for every contestant."""

import random
import zlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BLOCK", "crc_sum", "plain", "text", "write_text"]

BLOCK = 10_000  # messages between two looks at the clock
FIELDS = ("action", "page", "referrer", "agent", "region", "device", "campaign", "session", "user", "trace")
VOWELS = "aeiou"
CONSONANTS = "bcdfghjklmnprstvz"


def plain(size: int, count: int = BLOCK) -> list[bytes]:
    """Return different bodies of ``size`` bytes: a number, then letters."""
    return [
        (b"%09d " % i + bytes(97 + (i * 7 + k) % 26 for k in range(26)) * (size // 26 + 1))[:size] for i in range(count)
    ]


def text(size: int, count: int) -> list[bytes]:
    """Return event lines of ``size`` bytes that compress as logs do: words that repeat, and ids that do not."""
    chance = random.Random(11)
    words = ["".join(chance.choice(letters) for letters in (CONSONANTS, VOWELS) * 3) for _ in range(3000)]
    return [line(chance, words, size) for _ in range(count)]


def line(chance: random.Random, words: Sequence[str], size: int) -> bytes:
    """Return one event line of exactly ``size`` bytes."""
    parts = [f"2026-01-01T00:{chance.randrange(60):02d}:{chance.random() * 60:09.6f}Z"]
    length = len(parts[0])
    while length < size:
        value = f"{chance.getrandbits(48):012x}" if chance.random() < 0.3 else " ".join(chance.choices(words, k=3))
        parts.append(f"{chance.choice(FIELDS)}={value}")
        length += len(parts[-1]) + 1
    return "|".join(parts).encode()[:size]


def write_text(path: Path, size: int, count: int) -> None:
    """Write the text bodies one after the other, for the C programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(text(size, count)))


def crc_sum(bodies: Sequence[bytes]) -> int:
    """Return the sum of the bodies' CRC-32; it does not depend on their order."""
    return sum(map(zlib.crc32, bodies))
