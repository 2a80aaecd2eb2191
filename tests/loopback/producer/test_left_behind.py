"""Producers that nobody closed and nobody refers to: a warning, a closing in the background, and no thread left."""

import asyncio
import contextlib
import gc
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dataproxy
from dataproxy.outcomes import DeliveryResult
from dataproxy.producer import lifecycle
from dataproxy.producer.results import dispatcher
from tests.support.scripted import Peer, Scripted, ack, silent
from tests.support.waiting import SECONDS, eventually

CELL = """
import dataproxy
producer = dataproxy.Producer(target, group_id="g")
producer.send("s", b"x")
producer.send_nowait("t", b"y")
"""


def ours() -> set[threading.Thread]:
    """Return the threads of producers."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("dataproxy-")}


@pytest.fixture(autouse=True)
def before(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[threading.Thread]]:
    """Return the threads that were there; have unused names forgotten soon.  What earlier tests left warns here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    monkeypatch.setattr(dispatcher, "_TIDY_SECONDS", 0.05)
    yield ours()
    lifecycle._left.clear()


@contextlib.contextmanager
def one_warning(pattern: str = "was not closed") -> Iterator[None]:
    """Expect one ResourceWarning.  It may come a moment later, when the dispatcher has let go of what it works on."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        yield
        assert eventually(lambda: any(one.category is ResourceWarning for one in seen))
    texts = [str(one.message) for one in seen if one.category is ResourceWarning]
    seen.clear()  # the warning refers to its producer
    assert len(texts) == 1, texts
    assert re.search(pattern, texts[0]), texts


def late(held: list[tuple[Peer, bytes]]) -> Callable[[Peer, bytes], None]:
    """Return what keeps frames without an answer."""
    return lambda peer, frame: held.append((peer, frame))


def test_it_warns_is_closed_and_its_messages_have_results(before: set[threading.Thread]) -> None:
    held: list[tuple[Peer, bytes]] = []
    told: list[DeliveryResult] = []
    with Scripted(late(held)) as server:
        producer = dataproxy.Producer(server.target, group_id="g", on_delivery=told.append, linger=0)
        producer.send_nowait("s", b"x")
        delivery = producer.send("s", b"y")
        server.wait_frames(1)
        del delivery
        with one_warning(r"<Producer 'tcp://127.0.0.1:\d+' group 'g' open> was not closed"):
            del producer
            gc.collect()
        assert told == []  # so nobody has waited
        assert ours() - before
        server.react = lambda peer, frame: peer.send(ack(frame))

        def all_told() -> bool:
            while held:  # the server's thread may still put one here
                server.react(*held.pop())
            return len(told) == 2

        assert eventually(all_told)
        assert all(result.delivered for result in told)
        assert eventually(lambda: not ours() - before)


def test_what_cannot_be_delivered_fails_after_close_timeout(before: set[threading.Thread], caplog: Any) -> None:
    told: list[DeliveryResult] = []
    with Scripted(silent) as server, one_warning():
        producer = dataproxy.Producer(server.target, group_id="g", on_delivery=told.append, close_timeout=0.2)
        producer.send_nowait("s", b"x")
        del producer
        gc.collect()
        assert eventually(lambda: told)
        assert told[0].error is not None
        assert told[0].error.code == "CLOSED"
        assert eventually(lambda: not ours() - before)
    assert "a producer that was not closed was garbage-collected" in caplog.text


@pytest.mark.parametrize("by_name", [False, True])
def test_a_finalizer_takes_no_lock_that_its_thread_may_hold(before: set[threading.Thread], by_name: bool) -> None:
    """The collector runs anywhere, also where ``threading`` is about to start or end a thread."""

    def work() -> None:
        producer = dataproxy.Producer(server.target, group_id="g")
        if by_name:
            producer.send_nowait("s", b"x")
        with threading._active_limbo_lock:  # type: ignore[attr-defined]
            del producer
            gc.collect()

    with Scripted() as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert eventually(lambda: not ours() - before)


def test_a_cell_that_is_run_fifty_times_leaves_no_threads(before: set[threading.Thread]) -> None:
    with Scripted() as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        cell = compile(CELL, "cell", "exec")
        names: dict[str, Any] = {"target": server.target}
        gc.collect()
        gc.disable()  # a collector that comes late changes nothing
        try:
            for _ in range(50):
                exec(cell, names)
            one = len(ours() - before)
            names["producer"].close()
            assert eventually(lambda: not ours() - before), one
        finally:
            gc.enable()
        server.wait(lambda: len(server.bodies()) == 100)


def test_a_result_that_is_kept_keeps_its_producer(before: set[threading.Thread]) -> None:
    with Scripted() as server:
        kept = dataproxy.Producer(server.target, group_id="g", linger=0.01).send("s", b"x")
        gc.collect()
        assert kept.result(SECONDS).attempts == 1
        with one_warning():
            del kept
            gc.collect()
        assert eventually(lambda: not ours() - before)


def test_one_that_was_closed_says_nothing(before: set[threading.Thread]) -> None:
    with Scripted() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        producer = dataproxy.Producer(server.target, group_id="g")
        producer.send("s", b"x")
        producer.close()
        del producer
        gc.collect()
        assert not ours() - before


def test_a_forked_child_leaves_its_parents_producer_alone(before: set[threading.Thread]) -> None:
    with Scripted() as server:
        producer = dataproxy.Producer(server.target, group_id="g")
        producer.send("s", b"x").result(SECONDS)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with warnings.catch_warnings(record=True) as seen:
                    warnings.simplefilter("always")
                    del producer
                    gc.collect()
                status = len(seen)
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        producer.send("s", b"y").result(SECONDS)
        producer.close()


def test_an_asynchronous_one_too(before: set[threading.Thread]) -> None:
    async def use(target: str) -> None:
        producer = dataproxy.AsyncProducer(target, group_id="g")
        await producer.send("s", b"x")
        producer.send_nowait("s", b"y")

    with Scripted() as server, one_warning("<AsyncProducer .* was not closed"):
        asyncio.run(use(server.target))
        gc.collect()
        assert eventually(lambda: not ours() - before)
        server.wait(lambda: sorted(server.bodies()) == [b"x", b"y"])


def test_an_asynchronous_one_that_was_never_opened_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        producer = dataproxy.AsyncProducer("tcp://127.0.0.1:9", group_id="g")
        del producer
        gc.collect()
