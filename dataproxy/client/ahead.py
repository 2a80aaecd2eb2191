"""How far the dispatcher may be ahead of callbacks that another thread makes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Ahead", "Calls", "Part"]

#: Callbacks, each with the arguments of its calls.
Calls = Sequence[tuple[Callable[[Any], object], Sequence[Any]]]

_LOOK_SECONDS = 0.5  # a loop tells nobody that it was closed


class Part:
    """Hold some calls that were handed to a loop or an executor."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.left = sum(len(arguments) for _, arguments in calls)


class Ahead:
    """Count results that were handed over and are not told, and let the dispatcher wait while they are many.

    Whatever becomes of a part, made or not, it is taken off once.  All methods: any thread.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._parts: dict[Part, None] = {}  # in the order in which they were handed over
        self._hurried = False
        self.results = 0

    def add(self, part: Part, is_gone: Callable[[], bool]) -> list[Part]:
        """Count ``part`` once there is room for it; return parts that nobody will make, since ``is_gone()``.

        Waits as long as the calls take; not after ``hurry``.
        """
        lost: list[Part] = []
        with self._changed:
            while self.results >= self._most and not self._hurried:
                if is_gone():
                    lost = list(self._parts)
                    self._parts.clear()
                    self.results = 0
                    break
                self._changed.wait(_LOOK_SECONDS)
            self._parts[part] = None
            self.results += part.left
        return lost

    def keep(self, part: Part, left: int) -> None:
        """Take the results of ``part`` off but for ``left``, which will still be told."""
        with self._changed:
            if part in self._parts:
                self.results -= part.left - left
                part.left = left
                if left == 0:
                    del self._parts[part]
                self._changed.notify_all()

    def drop(self, part: Part) -> bool:
        """Take a part off that nobody will make; False when it was made, or taken off before."""
        with self._changed:
            known = part in self._parts
            if known:
                del self._parts[part]
                self.results -= part.left
                self._changed.notify_all()
            return known

    def hurry(self) -> None:
        """Let the dispatcher hand over all that is left without waiting: the producer is closing."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
