"""Functions that other threads want to be called on the one thread that owns what they are about."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from dataproxy.errors import ClosedError, ForkedError

__all__ = ["Tasks"]

T = TypeVar("T")
_LONG_S: Final = 30.0  # that another thread waits for its function


class Tasks:
    """Functions that wait for their thread.  ``wake`` lets the thread call `work_off` soon; ``owner`` is its name."""

    def __init__(self, wake: Callable[[], None], owner: str) -> None:
        self._wake, self._owner = wake, owner
        self._tasks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._lock = threading.Lock()
        self._thread = 0
        self._pid = os.getpid()
        self._ended = False

    def begin(self) -> None:
        """Say that the calling thread is the one."""
        self._thread = threading.get_ident()

    def run(self, function: Callable[[], T]) -> T:
        """Call a function on the thread, and return its result.

        Any thread but that one; an exception of the function is raised here.  Raises ClosedError when the hub is
        closed, ForkedError in a forked child, and TimeoutError if the thread is busy for half a minute: then the
        function is not called later; if it is being called already, the error says so.
        """
        if self._pid != os.getpid():
            raise ForkedError("the hub was started before a fork", hint="start a hub of its own in the child process")
        if threading.get_ident() == self._thread:
            return function()
        future: Future[T] = Future()
        with self._lock:
            if self._ended:
                raise ClosedError("the hub is closed", hint="make a new Hub")
            self._tasks.append((function, future))
        self._wake()
        try:
            return future.result(_LONG_S)
        except TimeoutError:
            if future.cancel():
                raise TimeoutError(f"{self._owner} is busy: nothing was done") from None
            if future.done():  # it has ended meanwhile, or the function itself has raised it
                return future.result(0)
            raise TimeoutError(f"{self._owner} is still at it: the change may count or not") from None

    def work_off(self) -> None:
        """Call what waits.  The thread."""
        while self._tasks:
            function, future = self._tasks.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it belongs to who waits
                future.set_exception(error)

    def end(self) -> None:
        """Take nothing more, and call what waits.  The thread."""
        with self._lock:
            self._ended = True
        self.work_off()
