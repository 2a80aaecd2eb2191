"""Calls that may hang and take no timeout: made on a thread, and abandoned when the time is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from dataproxy.process.threads import start_quiet

__all__ = ["side_by_side", "within"]

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_AT_A_TIME: Final = 32


class _Rounds(Generic[_Argument, _Result]):
    """Call a function for many arguments on several threads; a call that takes too long has no outcome."""

    def __init__(self, work: Callable[[_Argument], _Result], arguments: Sequence[_Argument]) -> None:
        self._work = work
        self._arguments = arguments
        self._lock = threading.Lock()
        self._next = 0
        self._left = len(arguments)
        self._done = threading.Event()
        self.outcomes: dict[_Argument, _Result | BaseException] = {}

    def run(self) -> None:
        """Take one argument after another; the body of each thread."""
        while True:
            with self._lock:
                if self._next == len(self._arguments):
                    return
                argument = self._arguments[self._next]
                self._next += 1
            try:
                outcome: _Result | BaseException = self._work(argument)
            except BaseException as error:  # noqa: BLE001 - it is raised, or told, where the work is awaited
                outcome = error
            with self._lock:
                self.outcomes[argument] = outcome
                self._left -= 1
                if not self._left:
                    self._done.set()

    def wait(self, seconds: float) -> dict[_Argument, _Result | BaseException]:
        """Return the outcomes after at most ``seconds``; no call begins after that."""
        if self._arguments:
            self._done.wait(seconds)
        with self._lock:
            self._next = len(self._arguments)
            return dict(self.outcomes)


def side_by_side(
    name: str, seconds: float, work: Callable[[_Argument], _Result], arguments: Sequence[_Argument]
) -> dict[_Argument, _Result | BaseException]:
    """Return the value or the exception of ``work(argument)`` for each argument, except for calls that take too long.

    A few threads called ``name`` do it; a thread that hangs is abandoned and ends when its call returns.  Blocks for up
    to ``seconds``; Ctrl-C ends the wait.
    """
    rounds = _Rounds(work, arguments)
    for _ in range(min(_AT_A_TIME, len(arguments))):
        start_quiet(name, rounds.run)
    return rounds.wait(seconds)


def within(name: str, seconds: float, work: Callable[[], _Result], give_up: Callable[[], None]) -> _Result:
    """Return what ``work`` returns, or raise what it raises.

    After ``seconds`` without a result it calls ``give_up``, which must make ``work`` end soon, and raises TimeoutError.
    Ctrl-C has the same effect, with KeyboardInterrupt.
    """
    found = None
    try:
        found = side_by_side(name, seconds, lambda _: work(), [""])
    finally:
        if not found:
            give_up()
    if not found:
        raise TimeoutError
    outcome = found[""]
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
