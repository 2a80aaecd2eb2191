"""CPython's own tests of asyncio's futures and tasks, with Waiters in the place of futures; none of them is copied.

A Waiter comes from a Desk, which has real accounting and a real notifier, and is given its result by the test.
"""

import asyncio
import sys
from asyncio import tasks
from typing import Any

import pytest
import uvloop

from dataproxy._core.producer.aio.waiter import Waiter
from tests.native.probe_waiter import Desk, answering

try:
    from test.test_asyncio import test_futures, test_tasks
    from test.test_asyncio import utils as test_utils
except ImportError:
    pytest.skip(
        "the interpreter's own tests are not installed (Debian: apt-get install libpython3-testsuite)",
        allow_module_level=True,
    )

#: Tests that do not apply, and why.  All others of the classes below have to pass.
FUTURES = {
    "test_uninitialized": "no Waiter is made by __new__ alone: that is refused (test_blank_objects)",
    "test_future_repr": "its text names the message that it waits for",
    "test_future_source_traceback": "where it was made is not noted: that would cost each send more than the send",
}
if sys.version_info >= (3, 13):
    FUTURES["test_copy_state"] = "sets an error that was raised before; a Waiter's is made for it, without a traceback"
TASKS = {
    "test_log_destroyed_pending_task": "who waits for a message is held by its loop's notifier, and cannot vanish",
}
UVLOOP = dict.fromkeys(
    (
        "test_tb_logger_exception_unretrieved",
        "test_future_exception_never_retrieved",
        "test_future_exception_never_retrieved_debug",
    ),
    "replaces the logger of asyncio.base_events, which uvloop does not use",
)
GATHER = dict.fromkeys(
    ("test_constructor_empty_sequence_use_running_loop", "test_constructor_empty_sequence_use_global_loop"),
    "gathers nothing, and asks that the loop's own futures come of that",
)


def without(base: type, not_applicable: dict[str, str]) -> type:
    """Return a class of tests without those that do not apply."""
    return type(base.__name__, (base,), dict.fromkeys(not_applicable))


class WithDesk(test_utils.TestCase):
    """Let ``set_result`` and ``set_exception`` of Waiters do what an answer does."""

    def setUp(self) -> None:
        self.desk = Desk()
        self.enterContext(answering())
        super().setUp()
        self.addCleanup(self.desk.close)

    def new_test_loop(self, gen: Any = None) -> Any:
        loop = super().new_test_loop(gen)
        self.desk.open(loop)
        return loop


class WithUvloop(WithDesk):
    """The same on a loop of uvloop."""

    def new_test_loop(self, gen: Any = None) -> Any:
        loop = uvloop.new_event_loop()
        self.set_event_loop(loop, cleanup=False)
        self.desk.open(loop)
        return loop


class TestFutures(without(test_futures.BaseFutureTests, FUTURES), WithDesk):
    cls = Waiter

    def _new_future(self, *, loop: Any = None) -> Waiter:
        return self.desk.new(loop or asyncio.get_event_loop())


class TestFuturesOfUvloop(without(test_futures.BaseFutureTests, FUTURES | UVLOOP), WithUvloop):
    cls = Waiter
    _new_future = TestFutures._new_future


class TestCallbacks(test_futures.BaseFutureDoneCallbackTests, WithDesk):
    def _new_future(self) -> Waiter:
        return self.desk.new(self.loop)


class TestCallbacksOfUvloop(test_futures.BaseFutureDoneCallbackTests, WithUvloop):
    _new_future = TestCallbacks._new_future

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.loop.close)


class TestTasks(without(test_tasks.BaseTaskTests, TASKS), WithDesk):
    Task = tasks._CTask

    def new_future(self, loop: Any) -> Waiter:
        return self.desk.new(loop)


class TestTasksInPython(TestTasks):
    Task = tasks._PyTask


class TestGather(without(test_tasks.FutureGatherTests, GATHER), WithDesk):
    def new_test_loop(self, gen: Any = None) -> Any:
        loop = super().new_test_loop(gen)
        plain = loop.create_future
        loop.create_future = lambda: self.desk.new(loop)
        self.addCleanup(setattr, loop, "create_future", plain)
        return loop


@pytest.mark.parametrize(
    ("base", "left_out"),
    [
        (test_futures.BaseFutureTests, FUTURES | UVLOOP),
        (test_tasks.BaseTaskTests, TASKS),
        (test_tasks.FutureGatherTests, GATHER),
    ],
)
def test_what_is_left_out_is_there(base: type, left_out: dict[str, str]) -> None:
    assert [name for name in left_out if not callable(getattr(base, name, None))] == []
