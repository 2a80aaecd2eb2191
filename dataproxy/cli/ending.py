"""How SIGINT, SIGTERM, and a reader of stdout that goes, end a command.

Both raise an exception, so that a command cleans up and ends with its own exit code.  While modules are being loaded, a
signal is only noted: an exception there could leave a module half loaded.  `arm` raises for it later.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
from types import FrameType

__all__ = ["Terminated", "Unread", "arm", "heed_reader", "install", "reader_gone", "release"]

_ENDS = (signal.SIGINT, signal.SIGTERM)
_LOOK_MS = 60_000
_noted = 0
_installed: list[int] = []


class Terminated(KeyboardInterrupt):
    """Report that SIGTERM came."""


class Unread(KeyboardInterrupt):
    """Report that nobody reads stdout any more."""


def install() -> None:
    """Note SIGINT and SIGTERM from now on; a second signal ends the process at once.  Main thread.

    A signal that was ignored when the process started (``nohup``, a background job of a shell) stays ignored.
    """
    number: int
    for number in _ENDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _note)
            _installed.append(number)


def arm() -> None:
    """Make signals raise from now on, and raise for a signal that was noted.  Does nothing without `install`.

    Raises KeyboardInterrupt for SIGINT, and Terminated for SIGTERM.  Main thread.
    """
    global _noted
    if _installed and signal.getsignal(_installed[0]) in (_note, signal.SIG_DFL):
        for number in _installed:
            signal.signal(number, _raise)
    if _noted:
        number, _noted = _noted, 0
        _raise(number, None)


def heed_reader() -> None:
    """End the command as soon as nobody reads its stdout any more, also while it has nothing to write.  Main thread.

    For commands that wait without end (``dataproxy events --follow | head -1``): a closed pipe else shows only when
    something is written.  Raises Unread for it from then on.  Does nothing without `install`, and where stdout is no
    pipe and no socket.
    """
    try:
        number = sys.stdout.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return
    if _installed and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        signal.signal(signal.SIGPIPE, _raise_unread)
        threading.Thread(target=_wait_unread, args=(number,), name="dataproxy-stdout", daemon=True).start()


def reader_gone() -> bool:
    """Tell whether the reader of stdout has closed the pipe: without something to write nothing else would show it."""
    try:
        return any(events & select.POLLERR for _, events in _watched(sys.stdout.fileno()).poll(0))
    except (OSError, ValueError):  # no file of the system
        return False


def release() -> None:
    """Give signals their usual effect: the rest of the process needs no cleaning up.  Main thread."""
    for number in _installed:
        signal.signal(number, signal.SIG_DFL)
    _installed.clear()


def _wait_unread(number: int) -> None:
    """Wait until the reader of a descriptor has gone, and tell the main thread; the body of a thread."""
    watched = _watched(number)
    while not watched.poll(_LOOK_MS):
        pass
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGPIPE)


def _watched(number: int) -> select.poll:
    """Return what waits for errors and hang-ups of a descriptor, and for nothing else."""
    watched = select.poll()
    watched.register(number, 0)
    return watched


def _raise_unread(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the command is ending: once is enough
    raise Unread


def _note(number: int, _frame: FrameType | None) -> None:
    global _noted
    _noted = number
    for one in _installed:
        signal.signal(one, signal.SIG_DFL)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
