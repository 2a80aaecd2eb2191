"""A lock, and waits for what is changed under it, that stay whole when a signal handler raises."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["Asked", "Changes", "Event"]

T = TypeVar("T")


class Changes:
    """Guard what several threads change, and let them wait for changes.

    ``threading.Condition`` takes its lock and gives it back in Python code.  A signal handler that raises there leaves
    the lock taken for ever, or has it given back twice.  This lock is one of C, which a ``with`` takes and gives back
    in one step, and nobody waits while having it::

        while True:
            with changes.lock:
                ...  # return what is there
                waiter = changes.waiter()
            changes.wait(waiter, seconds)

    Any thread.  Reentrant: a signal handler may come while its thread has the lock.
    """

    __slots__ = ("_waiters", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._waiters: set[threading.Lock] = set()

    def waiter(self) -> threading.Lock:
        """Return what the next change lets go.  The caller has the lock."""
        waiter = threading.Lock()
        waiter.acquire(timeout=0)  # it is new, and free
        self._waiters.add(waiter)
        return waiter

    def wait(self, waiter: threading.Lock, seconds: float) -> None:
        """Wait for a change since ``waiter`` was made, at most ``seconds``.  The caller does not have the lock."""
        try:
            waiter.acquire(timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX)))
        finally:
            self._waiters.discard(waiter)

    def tell(self) -> None:
        """Let everybody go who waits.  The caller has the lock."""
        for waiter in list(self._waiters):
            with contextlib.suppress(RuntimeError):  # it was let go before
                waiter.release()
            self._waiters.discard(waiter)  # last: if a signal handler raises before, the next change tells it


class Event:
    """Do what ``threading.Event`` does, and stay whole when a signal handler raises in a wait.  Any thread."""

    __slots__ = ("_changes", "_is_set")

    def __init__(self) -> None:
        self._changes, self._is_set = Changes(), False

    def is_set(self) -> bool:
        """Tell whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it, and let everybody go who waits."""
        with self._changes.lock:
            self._is_set = True
            self._changes.tell()

    def clear(self) -> None:
        """Let those wait who come from now on."""
        self._is_set = False

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is set, at most ``seconds`` (None: no limit), and tell whether it is."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._changes.lock:
                if self._is_set:
                    return True
                waiter = self._changes.waiter()
            self._changes.wait(waiter, threading.TIMEOUT_MAX if until is None else until - time.monotonic())
            if until is not None and time.monotonic() >= until:
                return self.is_set()


class Asked(Future[T]):
    """A future whose ``ended`` can be waited for by threads that signal handlers interrupt.

    A wait in `Future.result` takes a lock in Python code, which such a handler can leave taken: then whoever sets the
    result waits for ever.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ended = Event()
        self.add_done_callback(lambda _self: self.ended.set())
