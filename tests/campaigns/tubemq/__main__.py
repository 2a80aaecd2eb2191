"""Groups at TubeMQ's own master and broker for some minutes: ``python -m tests.campaigns.tubemq [SCENE...]``.

Members in processes of their own join, leave and are killed under messages of TubeMQ's Java client; master and broker
go away and come back; flow rules and rights are set through the master's interface for operators.  1 if anything was
missing, came twice without a reason, or took too long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.campaigns.counters import keep
from tests.campaigns.tubemq.scenes import SCENES, TOPICS
from tests.support.tubekit import Servers


def main() -> int:
    """Play the scenes, print what was seen; 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.tubemq", description=__doc__)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=f"{', '.join(SCENES)}; without any: all")
    parser.add_argument("--messages", type=int, default=200_000)
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.scenes if name not in SCENES]:
        parser.error(f"no scene {unknown[0]!r}; there are: {', '.join(SCENES)}")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="dataproxy-tubemq-") as home:
        servers = Servers(Path(home), TOPICS)
        print("starting TubeMQ's master and broker ...", flush=True)
        servers.run("start", "tubemq")
        try:
            for name in chosen.scenes or SCENES:
                print(f"{name}: {(SCENES[name].__doc__ or '').splitlines()[0]}", flush=True)
                began = time.monotonic()
                facts, problems = SCENES[name](servers, chosen.messages)
                facts |= {"seconds": time.monotonic() - began, "violations": len(problems)}
                keep(f"tubemq-{name}", facts)
                for key, value in facts.items():
                    print(f"{key:>24}  {round(value, 2) if isinstance(value, float) else value}")
                for problem in problems:
                    print("VIOLATION", problem)
                wrong += len(problems)
        finally:
            servers.run("stop", "tubemq-master", "tubemq-broker")
    print("every scene is as it must be" if not wrong else f"{wrong} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
