"""How SIGINT and SIGTERM end a command.

Both raise, so that a command tidies up and ends with a code of its own.  While modules are still being loaded a signal
is only noted: an exception there could leave anything half done.  `arm` makes up for it.
"""

from __future__ import annotations

import signal
from types import FrameType

__all__ = ["Terminated", "arm", "install", "release"]

_ENDS = (signal.SIGINT, signal.SIGTERM)
_noted = 0
_installed: list[int] = []


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def install() -> None:
    """Note SIGINT and SIGTERM from now on; a second one ends the process at once.  Main thread.

    One that the process was started to ignore (``nohup``, a background job of a shell) stays ignored.
    """
    number: int
    for number in _ENDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _note)
            _installed.append(number)


def arm() -> None:
    """Have signals raise from now on, and raise for one that was noted.  Does nothing without `install`.

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
    """Give signals their usual effect: what is left of the process need not tidy up.  Main thread."""
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
