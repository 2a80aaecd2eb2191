"""Guards what a record costs: instructions counted by callgrind, which a noisy machine does not change.

``python -m benchmarks.instructions`` runs a small program under valgrind and compares what one ``send_nowait``, one
record of ``send_batch`` and one ack cost with the bounds in ``instructions.toml``.  It ends with status 1 when a bound
is passed.  To move a bound add an entry with the reason; the last entry of a line holds.

What other threads do in the meantime can only add to a count (a pack sealed early, room waited for), so a figure over
its bound is counted again, and the least of six holds.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.callgrind import inclusive
from benchmarks.contest import Conditions, serve
from benchmarks.floors import BUILT, ROOT, build
from dataproxy import Producer

__all__ = ["BOUNDS", "bounds", "judge", "least", "main", "per_record"]

BOUNDS = ROOT / "benchmarks" / "instructions.toml"
CALLS, ROWS, ACKS = 20_000, 50_000, 2_000
COUNTS = 6
SLACK = 0.85  # a figure below this share of its bound: the bound should be lowered
# line: the function's symbol, and how often its work is done (0: once for each ack)
LINES = {
    "send_nowait": (r"__pyx_f_.*_6stream__call_bound", CALLS),
    "send_batch": (r"__pyx_pw_.*_6Stream_\d+send_batch", ROWS),
    "ack": (r"__pyx_f_.*_7replies_take_bytes", 0),
}


def work(port: int) -> None:
    """Do the work that is counted: calls, one batch, and single messages, so that each of these has its own ack.

    The next message is sent after the ack of the one before: otherwise the size of the heap of deadlines, and so the
    number of instructions, would depend on the machine's speed.
    """
    body = bytes(range(100))
    with Producer(f"tcp://127.0.0.1:{port}", group_id="b_bench") as producer:
        stream = producer.stream("s_bench")
        send = stream.send_nowait
        for _ in range(CALLS):
            send(body)
        stream.send_batch([body] * ROWS)
    with Producer(f"tcp://127.0.0.1:{port}", group_id="b_bench", batch_messages=1) as producer:
        for _ in range(ACKS):
            producer.send("s_bench", body).result()


def count(folder: Path) -> tuple[Mapping[str, int], int]:
    """Run the work under callgrind; return the instructions by function and the number of acks."""
    everything = frozenset(range(1024))
    written = folder / "callgrind.out"
    with serve("sink", Conditions(0, 0, everything, everything, folder)) as (port, counts):
        command = (
            *("valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={written}"),
            *(sys.executable, "-m", "benchmarks.instructions", "--work", str(port)),
        )
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode != 0:
        sys.exit(f"the program under valgrind failed: {ran.stderr[-2000:]}")
    if counts["records"] != CALLS + ROWS + ACKS:
        sys.exit(f"{CALLS + ROWS + ACKS} records were sent, the server counted {counts['records']}")
    with written.open() as lines:
        return inclusive(lines), int(counts["frames"])


def per_record(costs: Mapping[str, int], acks: int) -> dict[str, float]:
    """Return the instructions of one record or ack by line; ValueError when a function was not found."""
    figures = {}
    for name, (symbol, times) in LINES.items():
        found = [cost for function, cost in costs.items() if re.fullmatch(symbol, function)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} functions with a symbol like {symbol!r} were called; see LINES")
        figures[name] = found[0] / (times or acks)
    return figures


def bounds(text: str) -> dict[str, float]:
    """Return the bounds that hold; ValueError for a line without one, or an entry without a reason."""
    table: dict[str, Any] = tomllib.loads(text)
    found = {}
    for name in LINES:
        entries = table.get(name, [])
        if not entries or any(not entry.get("reason", "").strip() for entry in entries):
            raise ValueError(f"[[{name}]] needs an entry with bound, since and reason")
        found[name] = float(entries[-1]["bound"])
    return found


def judge(figures: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    """Return a line for each bound that is passed."""
    return [
        f"{name} costs {figure:.0f} instructions, the bound is {limits[name]:.0f}: make it cheaper, "
        f"or add an entry with the reason to {BOUNDS.name}"
        for name, figure in figures.items()
        if figure > limits[name]
    ]


def least(counted: Callable[[], dict[str, float]], limits: Mapping[str, float]) -> dict[str, float]:
    """Return the least figure of each line, counted until no bound is passed, COUNTS times at most."""
    figures = counted()
    for _ in range(COUNTS - 1):
        if not judge(figures, limits):
            break
        again = counted()
        figures = {name: min(figure, again[name]) for name, figure in figures.items()}
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and return 1 when a bound is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=int, metavar="PORT", help="the program that is counted")
    asked = parser.parse_args(argv)
    if asked.work:
        work(asked.work)
        return 0
    build()
    limits = bounds(BOUNDS.read_text())
    with tempfile.TemporaryDirectory(prefix="callgrind-", dir=BUILT) as folder:
        figures = least(lambda: per_record(*count(Path(folder))), limits)
    for name, figure in figures.items():
        hint = "; the bound can be tightened" if figure < limits[name] * SLACK else ""
        print(f"{name:<12}{figure:8.1f} instructions, bound {limits[name]:.0f}{hint}")
    passed = judge(figures, limits)
    for line in passed:
        print(line, file=sys.stderr)
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
