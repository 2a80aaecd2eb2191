"""Instruction counts by function, read from what valgrind's callgrind writes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

__all__ = ["inclusive"]

NAME = re.compile(r"\((\d+)\)(?: (.*))?")


def inclusive(lines: Iterable[str]) -> dict[str, int]:
    """Return the instructions of each function with everything it called, by the function's symbol.

    A function that calls itself is counted more than once.
    """
    names: dict[str, str] = {}
    costs: dict[str, int] = defaultdict(int)
    current = ""
    for line in lines:
        if line.startswith("fn="):
            current = resolve(line[3:], names)
        elif line.startswith("cfn="):
            resolve(line[4:], names)
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            words = line.split()
            if current and len(words) > 1:
                costs[current] += int(words[1])
        elif not line.strip():
            current = ""
    return dict(costs)


def resolve(text: str, names: dict[str, str]) -> str:
    """Return the symbol of ``(number) symbol`` or of ``(number)`` alone, without the suffix of the compiler."""
    found = NAME.match(text)
    if found is None:
        return text.strip()
    if found[2]:
        names[found[1]] = found[2].strip().split("'")[0].split(".")[0]
    return names[found[1]]
