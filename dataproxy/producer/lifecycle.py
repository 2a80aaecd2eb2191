"""All open producers: closed when the process ends normally, and started anew, one at a time, in a forked child."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Protocol

from dataproxy.logs import logger
from dataproxy.outcomes import Report
from dataproxy.process.threads import at_childs_end, endure

__all__ = ["beginning", "close_open", "leave", "register", "unregister", "wait_end", "warn_left"]

_LOG = logger()
# Both end a child process with os._exit after the finalizers of their own; handlers of atexit never run there.
_PROCESS_POOLS = ("multiprocessing", "billiard")
_GRACE_SECONDS = 1.0
_LONGEST_SECONDS = 86_400.0
_INTERRUPTIONS = 100  # exceptions of signal handlers that one wait survives; more do not come from signals
_GAPS = 20  # such exceptions between waits that the end survives


class _Closable(Protocol):
    def close(self, timeout: float | None = None) -> Report: ...

    def _begin_close(self) -> None: ...

    def _wait_settled(self, seconds: float) -> bool: ...

    def report(self) -> Report: ...

    @property
    def _inherited(self) -> bool: ...

    @property
    def _close_timeout(self) -> float: ...

    @property
    def _warns_at_exit(self) -> bool: ...

    @property
    def _close_on(self) -> tuple[str, ...]: ...


_live: weakref.WeakSet[_Closable] = weakref.WeakSet()
_left: dict[int, _Closable] = {}  # producers that became garbage before they were closed, by id
_begin_lock = threading.RLock()
_told: set[tuple[int, str]] = set()
_ending = False
_ended = threading.Event()


@contextlib.contextmanager
def beginning() -> Iterator[None]:
    """Let one thread at a time start an inherited producer anew."""
    with _begin_lock:
        yield


def wait_end() -> None:
    """If the process is ending, wait until its producers are closed, and a second longer.  Any thread."""
    if _ending:
        _ended.wait(_LONGEST_SECONDS)
        time.sleep(_GRACE_SECONDS)


def register(producer: _Closable) -> None:
    """Close ``producer`` when this process ends.  Any thread."""
    _live.add(producer)
    for name in _PROCESS_POOLS:
        tools = sys.modules.get(f"{name}.util")
        if tools is not None:
            _tell(name, tools)
    celery = sys.modules.get("celery.signals")
    if celery is not None:  # its workers end with os._exit, and this signal is all that comes before
        celery.worker_process_shutdown.connect(_worker_ends, weak=False, dispatch_uid="dataproxy")


def unregister(producer: _Closable) -> None:
    """Forget a closed producer.  Any thread."""
    _live.discard(producer)
    _left.pop(id(producer), None)


def leave(producer: _Closable) -> None:
    """Keep a producer that became garbage while it was open, until it is closed.  Any thread, in its finalizer."""
    _left[id(producer)] = producer


def warn_left(producer: object) -> None:
    """Warn that ``producer`` became garbage while it was open.  Any thread, in its finalizer."""
    text = f"{producer!r} was not closed; it is closed in the background now"
    warnings.warn(text, ResourceWarning, source=producer, stacklevel=2)


def _tell(name: str, tools: ModuleType) -> None:
    """Close producers at the end of a pool's worker process: of this process and of those forked from it."""
    key = (os.getpid(), name)
    if key in _told:
        return
    _told.add(key)
    # Called in each child before its work begins; finalizers from before the fork are thrown away at that moment.
    tools.register_after_fork(_close_all, lambda _: _finalize(name, tools))
    _finalize(name, tools)


def _finalize(name: str, tools: ModuleType) -> None:
    process = sys.modules.get(f"{name}.process")
    if process is not None and type(process.current_process()).__name__ != "_MainProcess":
        tools.Finalize(None, _close_all, exitpriority=-100)


def _worker_ends(**_: object) -> None:
    _close_all()


def _close_all() -> None:
    """Close all producers together: the longest ``close_timeout`` bounds the total time, and Ctrl-C ends the wait.

    Other exceptions of signal handlers shorten no producer's time and are raised at the end, when all are closed;
    SystemExit is not raised, since the process is ending already.
    """
    global _ending
    _ending = True
    try:
        _close_each()
    finally:
        _ended.set()


def close_open(on_signal: str = "") -> None:
    """Close the open producers of this process; with ``on_signal`` those whose ``close_on`` has it.  Any thread."""
    _close_each(on_signal)


def _close_each(on_signal: str = "") -> None:
    closing = _Closing(on_signal)
    endure(closing.run, closing.raised, _GAPS)
    for other in closing.raised:
        if not isinstance(other, KeyboardInterrupt | SystemExit):
            raise other


class _Closing:
    """Close producers together.  A ``run`` that an exception has ended goes on with the next one where it was."""

    def __init__(self, on_signal: str) -> None:
        self.raised: list[BaseException] = []
        self._on_signal, self._began = on_signal, time.monotonic()
        self._todo: list[_Closable] | None = None
        self._said: set[int] = set()  # ids of producers
        self._lost: list[Report] = []
        self._known = 0  # exceptions of earlier producers

    def run(self) -> None:
        """Close all."""
        if self._todo is None:
            self._todo = [one for one in dict.fromkeys([*_live, *_left.values()]) if self._concerns(one)]
        for producer in self._todo:
            producer._begin_close()
        while self._todo:
            try:
                self._close_last(self._todo)
            except BaseException as error:  # noqa: BLE001 - raised at the end
                self.raised.append(error)
        if self._lost:
            _say_aloud(self._lost)
            self._lost.clear()

    def _concerns(self, producer: _Closable) -> bool:
        return not producer._inherited and (not self._on_signal or self._on_signal in producer._close_on)

    def _close_last(self, todo: list[_Closable]) -> None:
        """Close the last producer, and take it off the list when that is done."""
        producer = todo[-1]
        end = self._began + producer._close_timeout
        if self._patient() and len(self.raised) - self._known < _INTERRUPTIONS:
            producer._wait_settled(max(0.0, end - time.monotonic()))
        _close(producer, max(0.0, end - time.monotonic()) if self._patient() else 0.0, self.raised)
        if id(producer) not in self._said:
            self._said.add(id(producer))
            self._say(producer)
        self._known = len(self.raised)
        todo.pop()

    def _patient(self) -> bool:
        return not any(isinstance(error, KeyboardInterrupt) for error in self.raised)

    def _say(self, producer: _Closable) -> None:
        """Log what a producer could not deliver, and keep its report for the line on stderr."""
        report = producer.report()
        if report.ok:
            return
        if producer._warns_at_exit:
            self._lost.append(report)
        _LOG.error(
            "a producer was still open when the process ended, and %d of its %d messages were not delivered: %s",
            report.accepted - report.delivered - report.sent, report.accepted, report,
        )  # fmt: skip


def _close(producer: _Closable, seconds: float, raised: list[BaseException]) -> None:
    """Close a producer within ``seconds``; exceptions of signal handlers are added to ``raised``."""
    for limit in (seconds, 0.0):
        try:
            producer.close(limit)
            break
        except BaseException as error:  # noqa: BLE001 - of a signal handler; what was begun is ended all the same
            raised.append(error)


def _say_aloud(lost: list[Report]) -> None:
    """Write one line on stderr about what was lost: most programs that end so have not set up logging."""
    accepted = sum(report.accepted for report in lost)
    missing = accepted - sum(report.delivered + report.sent for report in lost)
    codes: Counter[object] = Counter()
    for report in lost:
        codes.update(report.errors)
    counts = ", ".join(f"{count:,} {code}" for code, count in codes.items())
    last = next((report.last_error for report in lost if report.last_error is not None), None)
    if last is not None:
        counts += f"; the last error was {last}"
    who = "a producer" if len(lost) == 1 else f"{len(lost)} producers"
    line = (
        f"dataproxy: the process ended with {who} open, and {missing:,} of {accepted:,} messages were not delivered"
        f" ({counts}); call close() before the process ends\n"
    )
    with contextlib.suppress(Exception):  # stderr may be closed, full, or replaced by the application
        os.write(sys.stderr.fileno(), line.encode())  # unbuffered: a full buffer would fail again at exit, status 120


def _in_child() -> None:
    global _begin_lock, _ending, _ended  # in the parent a thread may have held the lock, or the end may have begun
    _begin_lock = threading.RLock()
    _ending = False
    _ended = threading.Event()
    _live.clear()
    _left.clear()


atexit.register(_close_all)
at_childs_end(_close_all)
os.register_at_fork(after_in_child=_in_child)
