"""``python -m tests.campaigns.crashpoints --kills 1000``: prints figures and keeps them; 1 if something is wrong."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.campaigns.counters import FOLDER, keep
from tests.campaigns.crashpoints.hubs import Nursery, build_killer
from tests.campaigns.crashpoints.rounds import Rounds, events

__all__ = ["main"]

#: Lives of the hubs of one store.
_LIVES = 100


def main(arguments: list[str] | None = None) -> int:
    """Run the kills, print and keep the totals; 1 when something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.crashpoints", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    kills: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    problems: list[str] = []
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="crashpoints-"))
    with Nursery(build_killer(FOLDER)) as nursery:
        for part, done in enumerate(range(0, chosen.kills, _LIVES)):
            rounds = Rounds(nursery, folder / str(part), chosen.seed + part)
            rounds.run(events(chosen.seed + part, min(_LIVES, chosen.kills - done)))
            kills += rounds.kills
            totals["messages"] += rounds.accepted + len(rounds.canary.done)
            totals["stored"] += rounds.ledger.read
            totals["sent again"] += rounds.retries + rounds.canary.sent_again
            problems += [f"seed {chosen.seed + part}: {problem}" for problem in rounds.problems]
            if rounds.problems:
                break
            shutil.rmtree(folder / str(part))
    facts = {
        "kills": kills.total(),
        "by event": dict(sorted(kills.items())),
        **totals,
        "acknowledged and lost": sum("acknowledged messages" in problem for problem in problems),
        "stored twice": sum("stored twice" in problem for problem in problems),
        "problems": problems,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - began, 1),
    }
    for name, value in facts.items():
        print(f"{name}: {value[:20] if isinstance(value, list) else value}")
    print(f"written to {keep('crashpoints', facts)}")
    if problems:
        print(f"the stores are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
