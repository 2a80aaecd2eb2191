"""`python -m benchmarks.tuning` runs: the programs behind a table's rows take their arguments and end well."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_quick_run_prints_a_table_and_writes_nothing():
    guide = (ROOT / "docs" / "tuning.md").read_bytes()
    command = [sys.executable, "-m", "benchmarks.tuning", "--quick", "--only", "oneatatime", "--only", "memory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    assert "| `send`, `result()`, the next | `linger=0ms` |" in done.stdout
    assert done.stdout.count("buffer_bytes=") == 4
    assert "not measured" not in done.stdout
    assert (ROOT / "docs" / "tuning.md").read_bytes() == guide
