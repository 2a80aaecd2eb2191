"""The thread that does what may wait: one thing after the other."""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Final

from dataproxy.errors import DataProxyError
from dataproxy.logs import SparingLog, logger
from dataproxy.process.changes import Changes
from dataproxy.process.threads import join, start_quiet

__all__ = ["Keeper"]

_LOG: Final = logger("rocketmq")


class Keeper:
    """Call functions on a thread of its own.  Any thread may ask for that."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._waiting: dict[Callable[[], object], tuple[float, int]] = {}  # when each is due next
        self._numbers = itertools.count()
        self._changes = Changes()
        self._over = False
        self._warnings = SparingLog(_LOG)
        try:
            self._thread = start_quiet("dataproxy-rocketmq-keeper", self._run)
        except BaseException:  # of a signal handler, too, when the thread runs already
            with self._changes.lock:
                self._over = True
                self._changes.tell()
            raise

    def soon(self, body: Callable[[], object], seconds: float = 0.0) -> None:
        """Call ``body`` once; what waits already to be called by then is not called twice."""
        due = time.monotonic() + seconds
        with self._changes.lock:
            if self._over or (body in self._waiting and self._waiting[body][0] <= due):
                return
            number = next(self._numbers)
            self._changes.tell()  # first: a signal handler that raises leaves nothing, or what will be done
            self._waiting[body] = (due, number)
            heapq.heappush(self._due, (due, number, body))

    def every(self, seconds: float, body: Callable[[], object]) -> None:
        """Call ``body`` again and again, with ``seconds`` in between."""

        def again() -> None:
            try:
                body()
            finally:
                self.soon(again, seconds)

        self.soon(again, seconds)

    def end(self) -> None:
        """Let the thread end, after what it does now; this does not wait for it."""
        with self._changes.lock:
            self._over = True
            self._changes.tell()

    def close(self, seconds: float) -> BaseException | None:
        """End the thread, and wait for that for up to ``seconds``; return what a signal handler raised meanwhile."""
        self.end()
        return join(self._thread, seconds) if threading.get_ident() != self._thread.ident else None

    def _next(self) -> Callable[[], object] | None:
        """Return what is due, None if it was called earlier."""
        _, number, body = heapq.heappop(self._due)
        if self._waiting.get(body, (0.0, -1))[1] != number:
            return None
        del self._waiting[body]
        return body

    def _run(self) -> None:
        while True:
            with self._changes.lock:
                if self._over:
                    return
                left = self._due[0][0] - time.monotonic() if self._due else math.inf
                waiter = self._changes.waiter() if left > 0 else None
                body = self._next() if waiter is None else None
            if waiter is not None:
                self._changes.wait(waiter, left)
            if body is None:
                continue
            try:
                body()
            except DataProxyError as error:
                if not self._over:  # else the end of the connections has ended it
                    self._warnings.warning("%s", error)
            except BaseException:  # noqa: BLE001 - it is logged, and the thread goes on
                _LOG.log(logging.ERROR, "what was due has failed", exc_info=True)
