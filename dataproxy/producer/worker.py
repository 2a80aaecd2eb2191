"""One thread that does for event loops what would block them: opening, large batches, closing."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from dataproxy.errors import ClosedError
from dataproxy.process.threads import start_hearing

__all__ = ["Job", "Worker", "closed"]

T = TypeVar("T")

_JOIN_SECONDS = 5.0
_IDLE_SECONDS = 3600.0


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def closed() -> ClosedError:
    """Return the error for a call after ``close``."""
    return ClosedError("the AsyncProducer is closed", hint="open a new one to continue")


class Job(Generic[T]):
    """Hold one call and its outcome; tasks of any loop may wait for it, and cancelling them does not end it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function: Callable[[], T] | None = function
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._result: T
        self._error: BaseException | None = None
        self._given_up = False
        self._last: Callable[[], None] | None = None
        self.done = False

    @property
    def failed(self) -> bool:
        """Tell whether the call has raised."""
        return self._error is not None

    @property
    def begun(self) -> bool:
        """Tell whether the call has begun, and perhaps ended."""
        return self._function is None

    def give_up(self) -> None:
        """Do not make the call, if it has not begun.  Any thread."""
        self._given_up = True

    def at_end(self, function: Callable[[], None]) -> None:
        """Call ``function()`` when the job ends, in place of a function given earlier; at once if it has ended.

        Any thread.
        """
        with self._lock:
            if not self.done:
                self._last = function
                return
        function()

    def run(self) -> None:
        """Make the call.  Thread: the worker."""
        function, self._function = self._function, None  # it refers to the producer, which refers to the job
        try:
            if self._given_up or function is None:
                raise asyncio.CancelledError
            self._result = function()
        except BaseException as error:  # noqa: BLE001 - it is raised where the job is awaited
            self._error = error
        del function
        with self._lock:
            self.done = True
            waiting, self._waiting = self._waiting, []
            last, self._last = self._last, None
        calls = [] if last is None else [last]
        for call in calls + [partial(loop.call_soon_threadsafe, _finish, future) for loop, future in waiting]:
            with contextlib.suppress(BaseException):  # the loop was closed, or has errors of its own
                call()

    async def wait(self) -> T:
        """Wait for the call; return what it returned, or raise what it raised.  Any loop."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self.done:
                _finish(future)
            else:
                self._waiting.append((loop, future))
        await future
        if self._error is not None:
            raise self._error
        return self._result


class Worker:
    """Run jobs one after the other on one thread, which lives from the first job to the one given to ``finish``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Job[object] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._unfinished = 0
        self._last: Job[Any] | None = None

    @property
    def idle(self) -> bool:
        """Tell whether every job is finished."""
        return self._unfinished == 0

    def submit(self, function: Callable[[], T]) -> Job[T]:
        """Call ``function()`` on the thread after earlier jobs.  Raises ClosedError after ``finish``.  Any thread."""
        with self._lock:
            if self._last is not None:
                raise closed()
            return self._put(function)

    def finish(self, function: Callable[[], T]) -> Job[T]:
        """Call ``function()`` on the thread as the last job, then end the thread; does not wait.  Any thread.

        A second call returns the job of the first one.
        """
        with self._lock:
            if self._last is None:
                self._last = self._put(function)
                self._jobs.put(None)
            return self._last

    def abandon(self, function: Callable[[], object]) -> None:
        """Call ``function()`` on the thread as the last job; nobody refers to this object any more.

        Any thread, in a finalizer.  It takes only the queue's lock, which the same thread may take twice.
        """
        self._jobs.put(Job(function))
        self._jobs.put(None)

    def _put(self, function: Callable[[], T]) -> Job[T]:
        job = Job(function)
        if self._thread is None:
            self._thread = start_hearing(self._name, self._run)
        self._unfinished += 1
        self._jobs.put(job)  # type: ignore[arg-type]
        return job

    def wait_end(self) -> None:
        """Wait for the end of the thread, which comes directly after the last job."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                continue
            if job is None:
                return
            job.run()
            del job  # no object of a job is kept alive during the wait for the next one
            with self._lock:
                self._unfinished -= 1
