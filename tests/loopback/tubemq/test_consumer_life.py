"""Consumers are opened, closed, left behind and misused."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dataproxy.config import load_consumer_config
from dataproxy.consumer.consumer import Consumer
from dataproxy.errors import ClosedError, ConfigError, DataProxyError
from tests.support.consumers import Opener, drain, next_pack
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually


def ours() -> list[str]:
    """Return the names of consumers' threads."""
    starts = ("dataproxy-consume", "dataproxy-member", "dataproxy-names")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(starts)]


def descriptors() -> set[str]:
    """Return what this process has open; sockets of the test's own server among it."""
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{one.name} {one.readlink()}")
        except OSError:
            continue  # of the list itself
    return found


# --- ends


def test_close_and_close_again(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    consumer = opened()
    drain(consumer, 1)
    consumer.close()
    consumer.close()
    consumer.close(0)
    ends = ("UnregisterRequestC2B", "CloseRequestC2M")
    assert [call.method for call in tube.calls if call.method in ends] == ["UnregisterRequestC2B", "CloseRequestC2M"]
    assert (tube.members("g"), tube.owner("g", "one", 0)) == ([], None)
    assert (consumer.stats().state, consumer.assignment(), consumer.lag()) == ("closed", [], {})
    assert "closed" in repr(consumer)


def test_uses_after_close(opened: Opener) -> None:
    consumer = opened()
    consumer.close()
    calls: list[Callable[[], Any]] = [consumer.poll, consumer.wait_ready, consumer.pause, consumer.resume]
    for call in calls:
        with pytest.raises(ClosedError):
            call()
    assert list(consumer) == list(consumer.records()) == []


def test_a_close_ends_the_waits_of_other_threads(opened: Opener) -> None:
    consumer = opened("three")
    codes: list[str] = []

    def wait() -> None:
        try:
            consumer.poll()
        except DataProxyError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    consumer.wait_ready()
    closers = [threading.Thread(target=consumer.close) for _ in range(3)]
    for thread in closers:
        thread.start()
    for thread in threads + closers:
        thread.join(30)
        assert not thread.is_alive()
    assert codes == ["CLOSED"] * 4


def test_a_block_that_raises_closes(tube: TubeServer, opened: Opener) -> None:
    def block() -> None:
        with opened() as consumer:
            consumer.wait_ready()
            raise KeyError(consumer.client)

    with pytest.raises(KeyError):
        block()
    assert tube.members("g") == []
    assert ours() == []


def test_close_while_servers_are_gone(tube: TubeServer, opened: Opener) -> None:
    consumer = opened()
    assert eventually(consumer.assignment)
    tube.stop_broker()
    tube.stop_master()
    consumer.close(30)
    assert ours() == []


def test_close_has_its_time(tube: TubeServer, opened: Opener, caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()
    consumer = opened()
    assert eventually(consumer.assignment)
    tube.on("UnregisterRequestC2B", ("hold", go))
    with caplog.at_level("WARNING"):
        consumer.close(0.1)
    assert "before its servers had answered" in caplog.text
    go.set()
    assert ours() == []


def test_nothing_is_left_behind(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    opened().close()
    opened.opened.clear()
    gc.collect()
    assert ours() == []
    tube.cut()
    before = descriptors()
    for _ in range(3):
        consumer = opened(on_assigned=lambda key: None)
        pack = next_pack(consumer)
        pack.rollback()
        consumer.close()
        opened.opened.clear()
        del consumer, pack
    gc.collect()
    tube.cut()
    assert eventually(lambda: not ours())
    assert eventually(lambda: descriptors() <= before), descriptors() - before


def test_connections_end_with_close(tube: TubeServer, opened: Opener) -> None:
    tube.cut()
    before = {one for one in descriptors() if "socket" in one}
    consumer = opened()
    assert eventually(consumer.assignment)
    consumer.close()
    assert eventually(lambda: {one for one in descriptors() if "socket" in one} <= before)


# --- garbage


def test_a_consumer_that_is_left_behind_warns_and_leaves(tube: TubeServer, opened: Opener) -> None:
    consumer = opened()
    assert eventually(consumer.assignment)
    opened.opened.clear()
    gone = weakref.ref(consumer)
    left = [consumer]
    del consumer
    with pytest.warns(ResourceWarning, match="was not closed"):
        left.clear()
    assert gone() is None
    assert eventually(lambda: not tube.members("g"))
    assert eventually(lambda: not ours())


def test_a_pack_keeps_its_consumer(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    pack = next_pack(opened())
    opened.opened.clear()
    gc.collect()
    pack.confirm()
    assert pack.outcome == "confirmed"
    left = [pack]
    del pack
    with pytest.warns(ResourceWarning):
        left.clear()
    assert eventually(lambda: not ours())


def test_a_consumer_that_could_not_be_made(tube: TubeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataproxy.consumer import base

    real, started = base.start_quiet, []

    def fails(name: str, body: Callable[[], None]) -> Any:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(real(name, body))
        return started[0]

    monkeypatch.setattr(base, "start_quiet", fails)
    with pytest.raises(RuntimeError, match="new thread"):
        Consumer(tube.target, group="g", topics="one")
    started[0].join(30)
    assert not started[0].is_alive()
    gc.collect()


def test_a_consumer_that_was_never_made() -> None:
    consumer = Consumer.__new__(Consumer)
    with pytest.raises(DataProxyError, match="was not made"):
        consumer.poll(0)
    assert repr(consumer) == "<Consumer not made>"
    del consumer
    gc.collect()
    for wrong in ({}, {"group": "g"}, {"topics": "one"}, {"nothing": 1}):
        with pytest.raises((ConfigError, TypeError)):
            Consumer("tubemq://127.0.0.1:1", **wrong)


def test_a_consumer_is_made_once(tube: TubeServer, opened: Opener) -> None:
    """The threads of the first one would stay for ever."""
    consumer = opened()
    consumer.wait_ready()
    with pytest.raises(DataProxyError, match="was made before"):
        consumer.__init__(tube.target, group="g", topics="one")
    consumer.close()
    assert ours() == []


# --- arguments


@pytest.mark.parametrize("wrong", [float("nan"), -1, -0.1, True, False, "1", b"1", [], 1j, object(), "nan"])
def test_timeouts_that_are_none(opened: Opener, wrong: Any) -> None:
    consumer = opened()
    for method in (consumer.poll, consumer.wait_ready, consumer.close):
        with pytest.raises(ConfigError) as caught:
            method(wrong)
        assert caught.value.code == "BAD_TIMEOUT"
    assert consumer.stats().state != "closed"


def test_timeouts_of_other_kinds(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    consumer = opened()
    consumer.wait_ready(timedelta(seconds=30))
    next_pack(consumer).rollback()
    for timeout in (float("inf"), 10**15, timedelta(days=10**6), None):
        pack = consumer.poll(timeout)
        assert pack is not None
        pack.rollback()
    consumer.pause()
    for timeout in (0, 0.0, -0.0, 1e-300, timedelta(0)):
        consumer.poll(timeout)
    consumer.close(float("inf"))


@pytest.mark.parametrize("name", ["on_assigned", "on_revoked"])
def test_callbacks_that_are_none(tube: TubeServer, name: str) -> None:
    for wrong in (5, "x", [], True):
        with pytest.raises(ConfigError):
            Consumer(tube.target, group="g", topics="one", **{name: wrong})


@pytest.mark.parametrize("name", ["on_assigned", "on_revoked"])
def test_callbacks_that_nobody_would_await(tube: TubeServer, name: str) -> None:
    async def tell(*told: Any) -> None:
        raise AssertionError(told)

    class Teller:
        async def __call__(self, *told: Any) -> None:
            await tell(*told)

    for wrong in (tell, functools.partial(tell, 1), Teller()):
        with pytest.raises(ConfigError, match="coroutine") as caught:
            Consumer(tube.target, group="g", topics="one", **{name: wrong})
        assert (caught.value.code, name in caught.value.message) == ("BAD_CALLBACK", True)


def test_a_complete_configuration(tube: TubeServer, opened: Opener) -> None:
    config = load_consumer_config(tube.target, "g", "one", not_found_wait=0.02)
    for wrong in (5, {}, "x"):
        with pytest.raises(ConfigError):
            Consumer(config=wrong)
    with pytest.raises(ConfigError):
        Consumer(config=config, config_file="x")
    tube.put("one", b"a")
    with Consumer(config=config) as consumer, Consumer(config=config, group="other") as other:
        assert drain(consumer, 1) == drain(other, 1) == [b"a"]
        assert (consumer.config, other.config.group) == (config, "other")
    assert consumer.client != other.client


def test_public_names(opened: Opener) -> None:
    consumer = opened()
    assert {name for name in dir(consumer) if not name.startswith("_")} == {
        "assign", "assignment", "available", "client", "close", "config", "confirm", "inlong_records", "lag", "pause",
        "poll", "position", "records", "resume", "rollback", "seek", "stats", "wait_ready",
    }  # fmt: skip


# --- what goes wrong on this side


def test_an_error_of_its_own_is_told_and_does_not_look_like_an_end(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = opened()
    consumer.wait_ready()

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("of a member")

    monkeypatch.setattr(consumer._driver.member, "poll", broken)
    assert eventually(consumer._state.ended.is_set)
    for use in (consumer.poll, lambda: next(iter(consumer)), consumer.wait_ready):
        with pytest.raises(DataProxyError, match="has stopped, because it met an error of its own") as caught:
            use()
        assert caught.value.fatal
        assert not isinstance(caught.value, ClosedError)
    consumer.close()
    with pytest.raises(ClosedError):
        consumer.poll()


@pytest.mark.filterwarnings("error::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_garbage_is_closed_even_if_its_warning_is_an_error(tube: TubeServer) -> None:
    consumer = Consumer(tube.target, group="g", topics=["one"])
    consumer.wait_ready()
    state = consumer._state
    del consumer
    gc.collect()
    assert eventually(state.ended.is_set)


def test_a_pack_whose_partition_is_forgotten_is_not_given_out(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    consumer = opened()
    assert eventually(lambda: consumer.stats().packs.fetched == 1)
    (number,) = consumer._state.assignment.values()
    consumer._core.forget(number)  # as when it is lost, before the loop has heard of it
    assert consumer.poll(0.05) is None


def test_broken_rules_of_a_group_leave_those_of_the_cluster(tube: TubeServer, opened: Opener) -> None:
    consumer = opened()
    consumer.wait_ready()
    tube.set_rules(cluster='[{"type":1,"rule":[{"zeroCnt":1,"freqInMs":70}]}]', group="nonsense")
    assert eventually(lambda: consumer._driver._valid["cluster"].empty == ((1, 70),))
    assert consumer._driver._valid["group"].empty == ()
