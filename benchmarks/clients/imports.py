"""Client program for the price of ``import dataproxy`` over a bare interpreter, in turns.

``python -m benchmarks.clients.imports``
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.clients.section import Section, report
from benchmarks.floors import ROOT

__all__ = ["main"]

PATH = f"import sys; sys.path.insert(0, {str(ROOT)!r})"


def run_ms(program: str) -> float:
    """Return the milliseconds of one interpreter."""
    began = time.perf_counter()
    subprocess.run((sys.executable, "-c", program), check=True, capture_output=True)
    return (time.perf_counter() - began) * 1e3


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it: medians of the pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    asked = parser.parse_args(argv)
    run_ms(f"{PATH}; import dataproxy")
    section = Section()
    bare, full = [], []
    for _ in range(asked.pairs):
        bare.append(run_ms(PATH))
        full.append(run_ms(f"{PATH}; import dataproxy"))
    fields = section.end(asked.pairs, 1)
    report(
        fields | {"import_ms": statistics.median(full) - statistics.median(bare), "bare_ms": statistics.median(bare)}
    )


if __name__ == "__main__":
    main()
