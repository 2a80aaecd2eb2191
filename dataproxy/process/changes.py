"""A lock, and waits for what is changed under it, that stay whole when a signal handler raises."""

from __future__ import annotations

import contextlib
import threading

__all__ = ["Changes"]


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
            self._waiters.discard(waiter)
            with contextlib.suppress(RuntimeError):  # a signal handler has let it go meanwhile
                waiter.release()
