"""What the threads of a listener have to do, and which of them is woken for it."""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Works"]

Work = TypeVar("Work")
_LONGEST_S: Final = 1e9  # thirty years: no limit
_STUCK_S: Final = 0.001


class Works(Generic[Work]):
    """Pieces of work for a number of threads, first come, first served; each gets them by ``get`` until ``end``.

    A thread is woken for each piece.  For one that is put with ``quick`` none is while another thread is awake: that
    one will be there before a woken one would.  If it has taken nothing after a millisecond, the others are woken.

    ``later`` calls a function after some seconds, on a thread that does not wait.  Any thread.
    """

    def __init__(self, threads: int, later: Callable[[float, Callable[[], None]], None]) -> None:
        self._lock = threading.RLock()  # a signal handler may close the consumer in the middle
        self._waiting: deque[Work] = deque()
        self._tokens: queue.SimpleQueue[None] = queue.SimpleQueue()  # each wakes one thread
        self._awake = self._threads = threads  # also those that do not run yet
        self._later = later
        self._taken = 0
        self._looks = self._ended = False

    def put(self, work: Work, *, quick: bool = False) -> None:
        """Add a piece of work."""
        with self._lock:
            self._waiting.append(work)
            if not quick or not self._awake:
                self._wake(1)
                return
            if self._looks:
                return
            self._looks = True
        self._look_again()

    def get(self) -> Work | None:
        """Wait for a piece of work, and take it; None: it has ended."""
        while True:
            with self._lock:
                if self._ended:
                    return None
                if self._waiting:
                    self._taken += 1
                    return self._waiting.popleft()
                self._awake -= 1
            self._tokens.get(timeout=_LONGEST_S)

    def end(self) -> None:
        """Let every thread have None."""
        with self._lock:
            self._ended = True
            self._wake(self._threads)

    def _wake(self, n: int) -> None:
        """Wake so many threads of those that sleep; under the lock."""
        for _ in range(min(n, self._threads - self._awake)):
            self._awake += 1
            self._tokens.put(None)

    def _look_again(self) -> None:
        taken = self._taken
        self._later(_STUCK_S, lambda: self._look(taken))

    def _look(self, taken: int) -> None:
        """Wake threads if nothing was taken meanwhile."""
        with self._lock:
            if self._taken == taken:
                self._wake(len(self._waiting))
            self._looks = bool(self._waiting) and self._awake < self._threads
            if not self._looks:
                return
        self._look_again()
