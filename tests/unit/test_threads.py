"""Waits for the end of a thread of this package, in the middle of which signal handlers raise."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from dataproxy.process.threads import endure, insist, join, start_hearing, start_quiet
from tests.support.waiting import SECONDS

_SOON = 0.05


class Interrupted(Exception):
    """Raised by a signal handler."""


@pytest.fixture
def alarms() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Return a function that has something called by a signal handler, soon, while its caller waits."""
    before = signal.getsignal(signal.SIGALRM)

    def call(body: Callable[[], None]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: body())
        signal.setitimer(signal.ITIMER_REAL, _SOON)

    yield call
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("start", [start_hearing, start_quiet])
def test_a_wait_goes_on_to_the_end_of_the_thread_and_gives_back_what_was_raised(
    start: Callable[[str, Callable[[], object]], threading.Thread], alarms: Callable[[Callable[[], None]], None]
) -> None:
    gate, done = threading.Event(), []
    thread = start("test", lambda: done.append(gate.wait(SECONDS)))

    def first() -> None:
        alarms(gate.set)
        raise Interrupted

    alarms(first)
    assert isinstance(join(thread, SECONDS), Interrupted)
    assert done == [True], "it has ended before the wait"
    assert not thread.is_alive()


def test_a_wait_that_heeds_signals_ends_with_them_and_the_thread_still_counts_as_running(
    alarms: Callable[[Callable[[], None]], None],
) -> None:
    gate = threading.Event()
    thread = start_quiet("test", lambda: gate.wait(SECONDS))

    def interrupt() -> None:
        raise Interrupted

    alarms(interrupt)
    assert isinstance(join(thread, SECONDS, heeds=True), Interrupted)
    assert thread.is_alive()
    gate.set()
    assert join(thread, SECONDS) is None and not thread.is_alive()


def test_a_wait_ends_with_its_time() -> None:
    gate = threading.Event()
    thread = start_quiet("test", lambda: gate.wait(SECONDS))
    assert join(thread, 0.0) is None and thread.is_alive()
    assert join(thread, _SOON) is None and thread.is_alive()
    gate.set()
    assert join(thread, float("inf")) is None and not thread.is_alive()


def test_a_thread_whose_body_raises_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    monkeypatch.setattr(threading, "excepthook", said.append)

    def fail() -> None:
        raise ValueError("by a test")

    thread = start_quiet("test", fail)
    assert join(thread, SECONDS) is None and not thread.is_alive() and len(said) == 1


@pytest.mark.parametrize("raised", [None, KeyboardInterrupt()])
def test_what_is_insisted_on_is_called_once_and_gives_back_what_came_meanwhile(raised: BaseException | None) -> None:
    calls: list[int] = []

    def body() -> BaseException | None:
        calls.append(threading.get_ident())
        return raised

    with contextlib.nullcontext() if raised is None else pytest.raises(KeyboardInterrupt):
        insist(body)
    assert calls == [threading.get_ident()]


def test_what_a_handler_has_ended_halfway_is_called_once_more_before_its_exception_goes_on() -> None:
    calls: list[str] = []

    def body() -> None:
        calls.append("begun")
        if len(calls) == 1:
            raise KeyboardInterrupt
        calls.append("ended")

    with pytest.raises(KeyboardInterrupt):
        insist(body)
    assert calls == ["begun", "begun", "ended"]


def test_what_is_raised_where_something_raised_is_caught_is_endured_too() -> None:
    calls: list[int] = []
    raised: list[BaseException] = []

    class Raising(list[BaseException]):
        """What the first exception is added to; the next signal comes there."""

        def append(self, error: BaseException) -> None:
            raised.append(error)
            if len(raised) == 1:
                raise SystemExit

    def body() -> None:
        calls.append(len(raised))
        if not raised:
            raise KeyboardInterrupt

    endure(body, Raising(), 2)
    assert [type(one) for one in raised] == [KeyboardInterrupt, SystemExit]
    assert calls == [0, 2]
