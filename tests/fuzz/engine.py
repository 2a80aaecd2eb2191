"""A small mutational fuzzer: seeds are changed, spliced and re-measured; every run of one seed number is the same.

A target module has ``SEEDS`` (a list of bytes) and ``check(data)``, which raises when a rule is broken.  What breaks
one is printed as hex together with the number of the run, which is all that is needed to see it again.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable

__all__ = ["Finding", "main", "mutate", "run"]

EDGES = [0, 1, 2, 3, 4, 5, 7, 8, 13, 25, 26, 0x26, 0x3D, 0x7F, 0x80, 0xEE, 0xFE, 0xFF]
NUMBERS = [0, 1, 4, 0x7F, 0x80, 0xFFFF, 0x10000, 0x7FFFFFF0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF]
WORDS = [b"&", b"=", b"groupId=g", b"&isAck=false", b"&syncSend=true", b"&cp=1", b"mid=5&", b"errCode=1", b"\xee\x01"]
MAX_SIZE = 4096


class Finding(AssertionError):
    """A target's rule was broken by ``data``."""

    def __init__(self, data: bytes, number: int, cause: BaseException) -> None:
        super().__init__(f"run {number}: {type(cause).__name__}: {cause}; input {data.hex()}")
        self.data = data


def mutate(data: bytes, seeds: list[bytes], rng: random.Random) -> bytes:
    """Return a changed copy of ``data``."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        kind = rng.randrange(9)
        at = rng.randrange(len(out) + 1)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.choice(EDGES)
        elif kind == 2:
            out[at:at] = rng.randbytes(rng.choice((1, 1, 2, 4)))
        elif kind == 3:
            del out[at : at + rng.choice((1, 1, 2, 4, 16))]
        elif kind == 4 and at + 4 <= len(out):
            out[at : at + 4] = rng.choice(NUMBERS).to_bytes(4)
        elif kind == 5 and at + 4 <= len(out):
            near = int.from_bytes(out[at : at + 4]) + rng.choice((-4, -1, 1, 4))
            out[at : at + 4] = (near & 0xFFFFFFFF).to_bytes(4)
        elif kind == 6:
            other = rng.choice(seeds)
            out[at:] = other[rng.randrange(len(other) + 1) :]
        elif kind == 7:
            out[at:at] = rng.choice(WORDS)
        elif kind == 8:
            size = rng.choice((1, 8, 32))
            out[at:at] = out[at : at + size]
    return bytes(out[:MAX_SIZE])


def run(
    check: Callable[[bytes], None],
    seeds: list[bytes],
    *,
    runs: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> int:
    """Try every seed and then changed ones, until ``runs`` or ``seconds`` are used up; return the number of runs."""
    rng = random.Random(seed)
    pool = list(seeds)
    end = None if seconds is None else time.monotonic() + seconds
    number = 0
    while runs is None or number < runs:
        if end is not None and number % 64 == 0 and time.monotonic() > end:
            break
        data = seeds[number] if number < len(seeds) else mutate(rng.choice(rng.choice((seeds, pool))), seeds, rng)
        try:
            check(data)
        except Exception as error:
            raise Finding(data, number, error) from error
        # Changed inputs are changed again now and then, within a bounded pool.
        if number >= len(seeds) and rng.randrange(32) == 0:
            if len(pool) < 8 * len(seeds):
                pool.append(data)
            else:
                pool[rng.randrange(len(seeds), len(pool))] = data
        number += 1
    return number


def main(check: Callable[[bytes], None], seeds: list[bytes]) -> None:
    """Run one target from the command line."""
    parser = argparse.ArgumentParser(description="Fuzz one parser; exit status 1 and the input on a finding.")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", help="hex of one input to try instead")
    options = parser.parse_args()
    if options.input is not None:
        check(bytes.fromhex(options.input))
        print("no finding")
        return
    try:
        count = run(check, seeds, seconds=options.seconds, seed=options.seed)
    except Finding as finding:
        sys.exit(f"finding: {finding}")
    print(f"{count} runs, no finding")
