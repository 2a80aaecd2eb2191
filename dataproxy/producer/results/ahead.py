"""A limit on results that were handed to another thread's callbacks and are not handled yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dataproxy.process.changes import Changes

__all__ = ["Ahead", "Calls", "Part"]

#: Callbacks; each is called once with each of its arguments.
Calls = Sequence[tuple[Callable[[Any], object], Sequence[Any]]]

_LOOK_SECONDS = 0.5  # between two checks of the loop: no event says that it was closed


class Part:
    """Hold some calls that were handed to a loop or an executor."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.left = sum(len(arguments) for _, arguments in calls)


class Ahead:
    """Count results that were handed over and whose callbacks have not run; make the dispatcher wait if they are many.

    Every part is subtracted exactly once, whether its calls were made or not.  All methods: any thread.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._changes = Changes()
        self._parts: dict[Part, None] = {}  # in the order of their hand-over
        self._hurried = False
        self.results = 0

    def add(self, part: Part, is_gone: Callable[[], bool]) -> list[Part]:
        """Count ``part`` once there is room for it; return the parts whose calls will never run, because ``is_gone()``.

        Waits until earlier calls have run, without a time limit; after ``hurry`` it does not wait.
        """
        lost: list[Part] = []
        while True:
            with self._changes.lock:
                full = self.results >= self._most and not self._hurried
                if full and is_gone():
                    lost = list(self._parts)
                    self._parts.clear()
                    self.results, full = 0, False
                if not full:
                    self._parts[part] = None
                    self.results += part.left
                    return lost
                waiter = self._changes.waiter()
            self._changes.wait(waiter, _LOOK_SECONDS)

    def keep(self, part: Part, left: int) -> None:
        """Subtract the results of ``part``, except for ``left`` whose callbacks will still run."""
        with self._changes.lock:
            if part in self._parts:
                self.results -= part.left - left
                part.left = left
                if left == 0:
                    del self._parts[part]
                self._changes.tell()

    def drop(self, part: Part) -> bool:
        """Subtract a part whose calls will never run; False if they have run, or it was subtracted before."""
        with self._changes.lock:
            known = part in self._parts
            if known:
                del self._parts[part]
                self.results -= part.left
                self._changes.tell()
            return known

    def hurry(self) -> None:
        """Let the dispatcher hand over the rest without waiting: the producer is closing."""
        with self._changes.lock:
            self._hurried = True
            self._changes.tell()
