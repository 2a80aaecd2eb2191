"""How SIGINT and SIGTERM end a command.

Both raise an exception, so that a command cleans up and ends with its own exit code.  While modules are being loaded, a
signal is only noted: an exception there could leave a module half loaded.  `arm` raises for it later.
"""

from __future__ import annotations

import signal
from types import FrameType

__all__ = ["Terminated", "arm", "install", "release"]

_ENDS = (signal.SIGINT, signal.SIGTERM)
_noted = 0
_installed: list[int] = []


class Terminated(KeyboardInterrupt):
    """Report that SIGTERM came."""


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


def release() -> None:
    """Give signals their usual effect: the rest of the process needs no cleaning up.  Main thread."""
    for number in _installed:
        signal.signal(number, signal.SIG_DFL)
    _installed.clear()


def _note(number: int, _frame: FrameType | None) -> None:
    global _noted
    _noted = number
    for one in _installed:
        signal.signal(one, signal.SIG_DFL)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
