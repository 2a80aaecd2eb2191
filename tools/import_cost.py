"""Print what `import dataproxy` costs: medians of interleaved runs of a bare interpreter and one with the import.

``python tools/import_cost.py [ROUNDS] [LIMIT_MS]``; with a limit, the exit status says whether it was kept.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run_ms(program: str, folder: str) -> float:
    """Return the milliseconds that one interpreter needs for ``program``, started in ``folder``."""
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, check=True)
    elapsed = (time.perf_counter() - begun) * 1000
    if done.stdout or done.stderr:
        sys.exit(f"the import is not silent: {(done.stdout + done.stderr).decode()!r}")
    return elapsed


def main() -> None:
    """Measure, print one line, and compare with the limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else None
    bare, full = [], []
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r})"
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds + 1):
            bare.append(run_ms(path, folder))
            full.append(run_ms(f"{path}; import dataproxy", folder))
        if list(Path(folder).iterdir()):
            sys.exit("the import wrote a file")
    cost = statistics.median(full[1:]) - statistics.median(bare[1:])  # the first pair warms the caches
    print(
        f"import dataproxy: {cost:.1f} ms more than a bare interpreter"
        f" (medians of {rounds}: {statistics.median(full[1:]):.1f} and {statistics.median(bare[1:]):.1f})"
    )
    if limit is not None and cost > limit:
        sys.exit(f"over the limit of {limit:g} ms")


if __name__ == "__main__":
    main()
