"""All hostile clients at once: ``python -m tests.campaigns.siege --seconds 60 --seed 1``.

A hub in a process of its own with a durable store; one honest producer and one honest reader, alone and besieged by
turns.  1 when something was lost or changed, when memory passed its bound, or when one of the two kept less than half
of its rate.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.campaigns.counters import keep
from tests.campaigns.siege.crowd import KINDS
from tests.campaigns.siege.memory import MIB
from tests.campaigns.siege.rounds import RATE, Figures, besiege

__all__ = ["main"]

_WINDOW = 4.0


def _table(figures: Figures) -> None:
    """Print who came, who was turned away, what memory was allowed and what the pair got done."""
    print(f"\n{'hostile client':30} {'connections':>12} {'closed':>8} {'sent MiB':>9} {'read MiB':>9}")
    for name, seen in sorted(figures.besiegers.items()):
        sent, received = seen["sent"] / MIB, seen["received"] / MIB
        print(f"{name:30} {seen['opened']:12,} {seen['away']:8,} {sent:9.1f} {received:9.1f}")
    print(f"{f'{len(figures.http)} kinds of HTTP clients':30} {sum(figures.http.values()):12,}")
    print(f"\n{'memory: bound, in MiB':80} ")
    for name, size in figures.parts.items():
        print(f"  {name:80} {size / MIB:8.1f}")
    print(f"  {'bound for its own memory':80} {figures.bound / MIB:8.1f}   held {figures.own / MIB:.1f}")
    whole = figures.bound + figures.file
    print(f"  {'with the map of data.mdb':80} {whole / MIB:8.1f}   resident {figures.resident / MIB:.1f}")
    print(f"\n{'honest':10} {'alone /s':>12} {'besieged /s':>12} {'share':>8}   (medians)")
    for role in figures.alone:
        alone, beside = statistics.median(figures.alone[role]), statistics.median(figures.besieged[role])
        print(f"{role:10} {alone:12,.0f} {beside:12,.0f} {figures.share(role):8.0%}")
    print(f"produced {figures.produced}\nread     {figures.read}\nstored   {figures.stored:,}")
    print(f"the hub ended {figures.closing:.2f} s after SIGTERM")


def main(arguments: list[str] | None = None) -> int:
    """Besiege a hub, print and keep the figures; 1 when something does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.siege", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of measuring, alone and besieged together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rate", type=float, default=RATE, help="messages a second of the honest producer; 0: no limit"
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this hostile client; again: more")
    parser.add_argument("--keep", action="store_true", help="leave the store and the logs for a look")
    chosen = parser.parse_args(arguments)
    rounds = max(1, round(chosen.seconds / (2 * _WINDOW)))
    folder = Path(tempfile.mkdtemp(prefix="dataproxy-siege-"))
    began = time.monotonic()
    try:
        window = min(_WINDOW, chosen.seconds / 2)
        figures = besiege(
            folder,
            chosen.seed,
            rounds,
            window,
            lambda text: print(text, flush=True),
            rate=chosen.rate,
            only=chosen.only,
        )
    finally:
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
    _table(figures)
    facts = {
        "seed": chosen.seed, "rounds": rounds, "kinds": KINDS, "messages": figures.produced["accepted"],
        "share": {role: round(figures.share(role), 3) for role in figures.alone},
        "own_bytes": figures.own, "bound_bytes": figures.bound, "resident_bytes": figures.resident,
        "file_bytes": figures.file, "closing_seconds": round(figures.closing, 2), "wrong": figures.wrong,
        "slow": figures.slow, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    file = keep("siege", facts)
    for text in figures.wrong + figures.slow:
        print("VIOLATION", text)
    print(f"siege: {KINDS} kinds of clients, {len(figures.wrong) + len(figures.slow)} violations; {file}")
    return 1 if figures.wrong or figures.slow else 0


if __name__ == "__main__":
    sys.exit(main())
