"""Finding the known name that is nearest to an unknown one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest_name"]

_CUTOFF = 0.7


def nearest_name(word: str, names: Iterable[str], more: Iterable[str] = ()) -> str | None:
    """Return the name that is nearest to ``word``, None if no name is near; upper and lower case are equal.

    Names that differ by one edit come before names that are only similar; ``names`` come before ``more``.
    """
    lowered = word.lower().replace("-", "_")
    groups = [sorted(names), sorted(more)]
    for group in groups:
        close = [name for name in group if _one_edit(lowered, name.lower())]
        if close:
            return max(close, key=lambda name: _likeness(lowered, name))
    for group in groups:
        best = max(group, key=lambda name: _likeness(lowered, name), default="")
        if best and _likeness(lowered, best) >= _CUTOFF:
            return best
    return None


def _likeness(word: str, name: str) -> float:
    from difflib import SequenceMatcher

    other = name.lower()
    return 2.0 if word == other else SequenceMatcher(None, word, other).ratio()


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
