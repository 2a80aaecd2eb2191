"""Which thread of a listener is woken for a piece of work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from dataproxy.rocketmq.group.works import Works
from tests.support.waiting import SECONDS, eventually


class Crew:
    """Two threads that hold what they get until they are told to go on, and calls that were put off."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []
        self.works: Works[str] = Works(2, lambda _seconds, call: self.later.append(call))
        self.got: queue.SimpleQueue[tuple[str, threading.Event]] = queue.SimpleQueue()
        self.threads = [threading.Thread(target=self._live) for _ in range(2)]

    def _live(self) -> None:
        while (work := self.works.get()) is not None:
            go_on = threading.Event()
            self.got.put((work, go_on))
            assert go_on.wait(SECONDS)

    def next(self) -> tuple[str, threading.Event]:
        """Return what a thread has got, and what lets it go on."""
        return self.got.get(timeout=SECONDS)

    def look(self) -> None:
        """Let the millisecond of a look pass."""
        self.later.pop(0)()

    def asleep(self, n: int) -> None:
        """Wait until so many threads sleep."""
        assert eventually(lambda: self.works._awake == 2 - n)


@contextmanager
def crew() -> Iterator[Crew]:
    with ExitStack() as stack:
        made = Crew()
        for thread in made.threads:
            thread.start()
            stack.callback(thread.join, SECONDS)
        stack.callback(made.works.end)
        made.asleep(2)
        yield made


def test_each_piece_has_a_thread() -> None:
    with crew() as one:
        one.works.put("a")
        one.works.put("b")
        found = [one.next(), one.next()]
        assert sorted(name for name, _ in found) == ["a", "b"]
        for _, go_on in found:
            go_on.set()
        one.asleep(2)
        assert not one.later


def test_a_quick_piece_waits_for_the_thread_that_is_awake() -> None:
    with crew() as one:
        one.works.put("a", quick=True)  # nobody is awake
        _, first = one.next()
        one.works.put("b", quick=True)
        one.works.put("c", quick=True)
        assert one.works._awake == 1
        assert len(one.later) == 1
        first.set()
        name, second = one.next()
        assert name == "b"
        one.look()  # something was taken meanwhile
        assert (one.works._awake, len(one.later)) == (1, 1)
        second.set()
        name, third = one.next()
        assert name == "c"
        one.look()  # nothing waits
        assert not one.later
        third.set()
        one.asleep(2)


def test_the_others_are_woken_when_the_thread_that_is_awake_takes_nothing() -> None:
    with crew() as one:
        one.works.put("a", quick=True)
        _, first = one.next()
        one.works.put("b", quick=True)
        one.look()
        name, second = one.next()
        assert name == "b"
        assert not one.later  # nobody is left to be woken
        first.set()
        second.set()


def test_threads_that_sleep_and_those_that_work_hear_of_the_end() -> None:
    with crew() as one:
        one.works.put("a")
        _, first = one.next()
        one.works.put("left", quick=True)
        one.works.end()
        one.look()
        assert not one.later
        first.set()
        for thread in one.threads:
            thread.join(SECONDS)
        assert not any(thread.is_alive() for thread in one.threads)
        assert one.got.empty()
