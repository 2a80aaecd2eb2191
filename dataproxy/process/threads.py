"""Threads of this package: native threads, most of which get no signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable

from dataproxy.errors import ConfigError
from dataproxy.process.changes import Event

__all__ = [
    "FORKS",
    "at_childs_end",
    "check_native_threads",
    "end_child",
    "endure",
    "finish",
    "forks",
    "insist",
    "is_here",
    "is_ours",
    "join",
    "start_hearing",
    "start_quiet",
]


_LONGEST_S = 1e9  # thirty years: no limit, which `Thread.join` does not take as infinity
_ours: weakref.WeakKeyDictionary[threading.Thread, Event] = weakref.WeakKeyDictionary()  # set when bodies have ended
_last: list[Callable[[], None]] = []
FORKS = [0]  #: what `forks` returns, for those to whom a call is too dear


def forks() -> int:
    """Return a number that is another one in each forked child; cheaper than the process id.  Any thread."""
    return FORKS[0]


def at_childs_end(close: Callable[[], None]) -> None:
    """Call ``close()`` when `end_child` ends a process: it closes what the child itself has opened."""
    _last.append(close)


def is_ours() -> bool:
    """Tell whether the caller runs on a thread that was started here."""
    return threading.current_thread() in _ours


def check_native_threads() -> None:
    """Raise ConfigError if ``threading`` makes coroutines (gevent, eventlet): our waits would block all of them."""
    gevent = sys.modules.get("gevent.monkey")
    eventlet = sys.modules.get("eventlet.patcher")
    by = ""
    if gevent is not None and gevent.is_module_patched("threading"):
        by, cure = "gevent", "monkey.patch_all(thread=False)"
    elif eventlet is not None and eventlet.is_monkey_patched("thread"):
        by, cure = "eventlet", "eventlet.monkey_patch(thread=False)"
    if by:
        raise ConfigError(
            f"{by} has replaced 'threading', and a producer needs threads of the operating system",
            code="GREEN_THREADS",
            hint=f"call {cure}: the rest may stay patched; waits of this package block the whole {by} thread then, "
            "so use send_nowait(), or wait in a native thread",
        )


def end_child(inherited: bool) -> None:
    """End this process if it is a child that a callback has forked on a thread of ours; when the callback ends.

    Behind the callback lies the parent's work: its connections, which the child shares, and copies of its messages.
    ``inherited``: whether the client was made before a fork.  What the callback raises, or the code of its exit, ends
    the child as it would end a program; what the child has opened itself is closed.
    """
    if not inherited or not is_ours():
        return
    error = sys.exc_info()[1]
    code: object = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code or 0
    elif error is not None:
        sys.excepthook(type(error), error, error.__traceback__)
    for close in _last:
        try:
            close()
        except BaseException:  # noqa: BLE001 - said, and the child ends all the same
            sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, none, or no room
            stream.flush()
    os._exit(code & 0xFF if isinstance(code, int) else 1)


def start_quiet(name: str, body: Callable[[], None]) -> threading.Thread:
    """Start a daemon thread to which no signal is ever delivered.  For threads that run no code of the user."""

    def deaf() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        body()

    return start_hearing(name, deaf)


def start_hearing(name: str, body: Callable[[], None]) -> threading.Thread:
    """Start a daemon thread with its starter's signal mask: processes that callbacks start there inherit the mask."""
    over = Event()

    def whole() -> None:
        try:
            body()
        finally:
            over.set()

    thread = threading.Thread(target=whole, name=name, daemon=True)
    _ours[thread] = over
    thread.start()
    return thread


def is_here(thread: threading.Thread) -> bool:
    """Tell whether the caller runs on a thread.  The number of one that has ended may be the caller's by now."""
    return thread.ident == threading.get_ident() and thread.is_alive()


def join(thread: threading.Thread, seconds: float, *, heeds: bool = False) -> BaseException | None:
    """Wait for the end of a thread that was started here; return what a signal handler raised in the meantime.

    ``heeds``: the wait ends then.  Else it goes on: what the thread works on must not go before it has ended.  In
    `Thread.join` of Python 3.11 a handler that raises makes a running thread count as ended, so that is called last.
    """
    raised: BaseException | None = None
    deadline = time.monotonic() + min(seconds, _LONGEST_S)
    over = _ours[thread]
    while thread.is_alive():  # not in a forked child
        try:
            if over.wait(max(0.0, deadline - time.monotonic())):
                thread.join(max(0.0, deadline - time.monotonic()))
        except BaseException as error:  # noqa: BLE001 - given back
            raised = error
            if not heeds:
                continue
        break
    return raised


def finish(name: str, body: Callable[[], None]) -> None:
    """Run ``body`` to its end, and raise then what it has raised, or a signal handler meanwhile.

    Handlers run on the main thread, and would end it halfway there: it runs on a thread of its own then.
    """
    if threading.current_thread() is not threading.main_thread():
        body()
        return
    first, over = threading.Lock(), Event()
    raised: list[BaseException] = []
    begun = False

    def whole() -> None:
        if first.acquire(timeout=0):
            try:
                body()
            except BaseException as error:  # noqa: BLE001 - raised below
                raised.append(error)
            finally:
                over.set()

    while not over.is_set():
        try:
            if not begun:
                start_quiet(name, whole)
            begun = True
            over.wait(_LONGEST_S)
        except BaseException as error:  # noqa: BLE001 - raised below
            if begun or not isinstance(error, RuntimeError):  # which says that the system has no thread, or Python ends
                raised.append(error)
            begun = True
            whole()  # unless that thread does it
    if raised:
        raise raised[0]


def insist(body: Callable[[], BaseException | None]) -> None:
    """Run ``body`` to its end here, and raise then what a signal handler has raised meanwhile.

    ``body`` returns what a handler raised in its waits, see `join`.  One that raises elsewhere ends it halfway: it is
    called once more then, for what is left.  Other than with `finish` it may take locks that the caller has.
    """
    try:
        raised = body()
    except BaseException:
        body()
        raise
    if raised is not None:
        raise raised


def endure(body: Callable[[], None], raised: list[BaseException], times: int) -> None:
    """Run ``body`` until it has come to its end; what signal handlers raise meanwhile is added to ``raised``.

    An ``except`` does not cover itself: the next signal's exception in it leaves this call, and the one around it, of
    ``times``, catches that.  Each that has caught one has ``body`` called again, which then does what is left.
    """
    try:
        if times:
            endure(body, raised, times - 1)
        body()
    except BaseException as error:  # noqa: BLE001 - given back
        raised.append(error)


def _count_fork() -> None:
    FORKS[0] += 1


os.register_at_fork(after_in_child=_count_fork)
