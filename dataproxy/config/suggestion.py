"""The nearest known name for one that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest_name"]

_CUTOFF = 0.7


def nearest_name(word: str, names: Iterable[str]) -> str | None:
    """Return the name that is nearest to ``word``, None when nothing is near.

    Names one edit away come before everything that merely has much in common; the case does not count.
    """
    from difflib import SequenceMatcher

    lowered = word.lower().replace("-", "_")
    best: tuple[float, str] | None = None
    for name in sorted(names):
        other = name.lower()
        if other == lowered or _one_edit(lowered, other):
            score = 2.0 if other == lowered else 1.0
            score += SequenceMatcher(None, lowered, other).ratio()
        else:
            score = SequenceMatcher(None, lowered, other).ratio()
        if score >= _CUTOFF and (best is None or score > best[0]):
            best = (score, name)
    return best[1] if best is not None else None


def _one_edit(left: str, right: str) -> bool:
    """Tell if one insertion, deletion, replacement or swap of neighbours makes the words equal."""
    if abs(len(left) - len(right)) > 1:
        return False
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    rest_left, rest_right = left[start:], right[start:]
    return (
        rest_left[1:] == rest_right[1:]
        or rest_left[1:] == rest_right
        or rest_left == rest_right[1:]
        or (rest_left[:2] == rest_right[:2][::-1] and rest_left[2:] == rest_right[2:])
    )
