"""Waits for changes: told at once, in time, and whole after whatever a signal handler raises."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from dataproxy.process.changes import Changes, Event
from tests.support.interrupting import interrupted_at

SIGNALS = 2000


class Interrupted(Exception):
    """What the signal handler raises."""


def is_free(changes: Changes) -> bool:
    """Tell whether another thread can have the lock."""
    found = []

    def look() -> None:
        found.append(changes.lock.acquire(timeout=0))
        if found[0]:
            changes.lock.release()

    other = threading.Thread(target=look)
    other.start()
    other.join()
    return found[0]


def test_who_waits_is_told() -> None:
    changes, told = Changes(), []
    ready = threading.Barrier(4)

    def wait() -> None:
        with changes.lock:
            waiter = changes.waiter()
        ready.wait()
        changes.wait(waiter, 60)
        told.append(time.monotonic())

    waiting = [threading.Thread(target=wait) for _ in range(3)]
    for one in waiting:
        one.start()
    ready.wait()
    assert told == []
    with changes.lock:
        changes.tell()
    for one in waiting:
        one.join(30)
    assert len(told) == 3


def test_who_was_not_told_because_of_a_signal_handler_is_told_the_next_time() -> None:
    interrupted, place = True, 0
    while interrupted:
        changes = Changes()
        with changes.lock:
            waiters = [changes.waiter() for _ in range(3)]
            _, interrupted = interrupted_at(place, changes.tell)
            changes.tell()
        assert all(one.acquire(timeout=0) for one in waiters), f"after an interrupt at place {place}"
        place += 1
    assert place > 5


def test_a_change_before_the_wait_is_seen() -> None:
    changes = Changes()
    with changes.lock:
        waiter = changes.waiter()
        changes.tell()
    began = time.monotonic()
    changes.wait(waiter, 60)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.01])
def test_the_time_is_over_and_nothing_is_kept(seconds: float) -> None:
    changes = Changes()
    with changes.lock:
        waiter = changes.waiter()
    changes.wait(waiter, seconds)
    assert not changes._waiters


def test_for_ever_is_no_error() -> None:
    changes = Changes()
    with changes.lock:
        waiter = changes.waiter()
        changes.tell()
    changes.wait(waiter, float("inf"))


def test_a_handler_that_raises_leaves_the_lock_free_and_is_what_is_raised() -> None:
    changes = Changes()
    heard = 0

    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while heard < SIGNALS:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True:
                    with changes.lock:
                        changes.tell()
                        waiter = changes.waiter()
                    changes.wait(waiter, 0)
            except Interrupted:
                heard += 1
            assert is_free(changes)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with changes.lock:
        changes.tell()
    assert not changes._waiters


def test_a_handler_may_tell_while_its_thread_tells() -> None:
    changes = Changes()

    def tell(_number: int, _frame: object) -> None:
        with changes.lock:
            changes.tell()

    before = signal.signal(signal.SIGALRM, tell)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
        for _ in range(20_000):
            with changes.lock:
                waiters = [changes.waiter() for _ in range(3)]
                changes.tell()
            for waiter in waiters:
                changes.wait(waiter, 30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_event_lets_go_who_waits_and_who_comes_later() -> None:
    event, told = Event(), []
    waiting = [threading.Thread(target=lambda: told.append(event.wait(60))) for _ in range(3)]
    for one in waiting:
        one.start()
    assert not event.wait(0.01)
    event.set()
    for one in waiting:
        one.join(30)
    assert told == [True] * 3
    assert event.wait() and event.is_set()
    event.clear()
    assert not event.wait(0)


def test_an_event_stays_whole_when_a_handler_raises() -> None:
    event, heard = Event(), 0

    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while heard < SIGNALS:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True:
                    event.wait(0)
            except Interrupted:
                heard += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    other = threading.Thread(target=event.set, daemon=True)
    other.start()
    other.join(30)
    assert event.is_set()
