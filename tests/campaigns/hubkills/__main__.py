"""``python -m tests.campaigns.hubkills --kills 300``: kill -9 of durable hubs while groups read from them.

At each hub a producer of DataProxy and one of TubeMQ send, and two members of a group read and confirm; after each
kill the offsets in the store are compared with what the members were told.  A hub that comes back divides nothing for
15 s, so several hubs die side by side.  Prints figures and keeps them; 1 if something was lost.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.campaigns.counters import keep
from tests.campaigns.hubkills.rounds import Rounds

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the kills, print and keep the figures; 1 when something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hubkills", description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--hubs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="hubkills-"))
    began = time.monotonic()
    rounds = [Rounds(folder / str(i), chosen.seed + i) for i in range(chosen.hubs)]
    kills = [len(range(i, chosen.kills, chosen.hubs)) for i in range(chosen.hubs)]
    with ThreadPoolExecutor(chosen.hubs) as pool:
        list(pool.map(Rounds.run, rounds, kills))
    back = sorted(seconds for one in rounds for seconds in one.back_s) or [0.0]
    problems = [f"seed {chosen.seed + i}: {text}" for i, one in enumerate(rounds) for text in one.problems]
    facts = {
        "kills": sum(one.kills for one in rounds),
        "hubs": chosen.hubs,
        "acknowledged": sum(one.delivered for one in rounds),
        "without an acknowledgement": sum(one.failed for one in rounds),
        "stored": sum(one.stored for one in rounds),
        "packs": sum(one.reading.packs for one in rounds),
        "outcomes": dict(sorted(sum((one.reading.outcomes for one in rounds), Counter()).items())),
        "came again": sum(one.reading.again for one in rounds),
        "reads on after s, median": round(back[len(back) // 2], 3),
        "reads on after s, most": round(back[-1], 3),
        "problems": problems,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - began, 1),
    }
    for name, value in facts.items():
        print(f"{name}: {value[:20] if isinstance(value, list) else value}")
    print(f"written to {keep('hubkills', facts)}")
    if problems:
        print(f"the stores are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
