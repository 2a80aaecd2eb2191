"""The end of a process closes its producers, whatever is raised meanwhile; the log of a producer stays small."""

import gc
import sys
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from dataproxy import logs
from dataproxy.outcomes import Report
from dataproxy.producer import lifecycle
from dataproxy.producer.results.dispatcher import EventLog

REFUSED = 8  # a frame, with a code


class Odd:
    """A producer whose waits raise, each time or as often as ``raises`` says."""

    _inherited = False
    _close_timeout = 5.0
    _warns_at_exit = True

    def __init__(self, raises: int) -> None:
        self.raises = raises
        self.waits = 0
        self.closed: list[float] = []

    def _begin_close(self) -> None:
        """Begin nothing."""

    def _wait_settled(self, seconds: float) -> bool:
        self.waits += 1
        if self.waits <= self.raises:
            raise MemoryError
        return True

    def close(self, timeout: float | None = None) -> Report:
        assert timeout is not None
        self.closed.append(timeout)
        return self.report()

    def report(self) -> Report:
        return Report(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def test_what_raises_for_ever_is_closed_all_the_same(monkeypatch) -> None:
    for_ever, often, never = Odd(10**9), Odd(3), Odd(0)
    monkeypatch.setattr(lifecycle, "_live", [never, often, for_ever])
    try:
        lifecycle._close_all()
    except MemoryError:
        pass
    finally:
        lifecycle._in_child()
    assert [len(one.closed) for one in (for_ever, often, never)] == [1, 1, 1]
    assert for_ever.waits == 100
    assert (often.waits, never.waits) == (4, 1)


class Signalled(Odd):
    """A producer whose first wait a signal handler ends; the next signal comes ``places`` places later."""

    def __init__(self, places: int) -> None:
        super().__init__(0)
        self.places = places

    def _wait_settled(self, seconds: float) -> bool:
        self.waits += 1
        if self.waits == 1:
            sys.setprofile(self._look)
            raise SystemExit
        return True

    def _look(self, frame: FrameType, event: str, _what: Any) -> None:
        """Raise where a signal handler could run in the module: a call has begun, or has come back from C."""
        if event in ("call", "c_return") and frame.f_code.co_filename == lifecycle.__file__:
            self.places -= 1
            if self.places < 0:
                raise SystemExit  # which ends the profile, too


def test_all_are_closed_wherever_the_second_of_two_signals_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.disable()  # what is raised in a finalizer reaches nobody
    reached, place = True, 0
    try:
        while reached:
            signalled, quiet = Signalled(place), Odd(0)
            monkeypatch.setattr(lifecycle, "_live", [quiet, signalled])
            try:
                lifecycle.close_open()
            except SystemExit:
                pass
            finally:
                sys.setprofile(None)
            assert signalled.closed and quiet.closed, f"after a signal at place {place}"
            reached = signalled.places < 0
            place += 1
    finally:
        gc.enable()
    assert place > 5


def test_a_proxy_that_makes_up_codes_fills_no_memory(caplog, monkeypatch) -> None:
    monkeypatch.setattr(logs, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # nothing is said again later
    log = EventLog()
    for code in range(2000):
        log.write(REFUSED, "10.0.0.1:46801", code)
        log.write(REFUSED, "10.0.0.1:46801", code)
    assert len(log._repeats._last) <= 1000
    assert len(log._repeats._left_out) <= 1000
    assert sum("10.0.0.1:46801" in record.getMessage() for record in caplog.records) == 2000
