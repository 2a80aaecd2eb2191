"""What the application supplies is run against each place where it is called: nothing of it ends a thread of ours."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

import dataproxy
from dataproxy.logs import Log, lost_records
from dataproxy.producer import lifecycle
from dataproxy.producer.producer import Producer
from dataproxy.producer.worker import Worker
from tests.support.scripted import Scripted, silent

SECONDS = 30
KINDS = [ValueError, RuntimeError, SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, RecursionError]
RAISED = pytest.mark.parametrize("kind", KINDS)


class Hostile(logging.Handler):
    """A handler that raises for each record, or from its filter."""

    def __init__(self, kind: type[BaseException], where: str) -> None:
        super().__init__()
        self.kind = kind
        self.records = 0
        if where == "filter":
            self.addFilter(self.emit)

    def emit(self, record: logging.LogRecord) -> bool:
        self.records += 1
        raise self.kind(record.getMessage())


class BadText:
    """A callable whose text cannot be had."""

    def __call__(self, result: object) -> None:
        raise ValueError(self)

    def __repr__(self) -> str:
        raise ZeroDivisionError


class Places:
    """Executors and loops that raise where they are given work, or lose it."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def submit(self, *_: object) -> Any:
        raise self.kind("no")


class Losing:
    """An executor that cancels what it is given, or that cannot send it where it would be done."""

    def __init__(self, how: str) -> None:
        self.how = how

    def submit(self, *_: object) -> Future[None]:
        future: Future[None] = Future()
        if self.how == "cancels":
            future.cancel()
        else:
            future.set_exception(TypeError("cannot pickle '_thread.lock' object"))
        return future


class BadLoop:
    """A loop that takes nothing."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def is_closed(self) -> bool:
        return False

    def call_soon_threadsafe(self, *_: object) -> None:
        raise self.kind("no")


@pytest.fixture
def logs() -> Iterator[Callable[[logging.Handler], None]]:
    """Add handlers for the time of a test, in front of those that are there."""
    top = logging.getLogger("dataproxy")
    before, level = list(top.handlers), top.level

    def add(handler: logging.Handler) -> None:
        top.setLevel(logging.INFO)
        top.handlers.insert(0, handler)

    yield add
    top.handlers[:] = before
    top.setLevel(level)


def make(target: str, **options: Any) -> Producer:
    return Producer(target, group_id="g", **{"linger": 0.001, **options})


@RAISED
@pytest.mark.parametrize("where", ["emit", "filter"])
def test_a_log_handler_that_raises(
    logs: Callable[[logging.Handler], None], kind: type[BaseException], where: str
) -> None:
    told: list[dataproxy.DeliveryResult] = []
    handler = Hostile(kind, where)
    logs(handler)
    before = lost_records()
    with Scripted() as server:
        p = make(server.target, on_delivery=told.append)
        for _ in range(3):
            p.send("s", b"x", on_delivery=BadText()).result(SECONDS)
            p.flush(SECONDS)
        assert p.close().delivered == 3
        assert len(told) == 3
        stats = p.stats()
    assert handler.records
    assert stats.callback_errors == 3
    assert stats.log_errors == lost_records() > before


@RAISED
def test_a_place_for_callbacks_that_raises(kind: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    for place in (Places(kind), BadLoop(kind)):
        with Scripted() as server:
            p = make(server.target, callback_on=place)
            deliveries = [p.send("s", b"x", on_delivery=print) for _ in range(3)]
            for delivery in deliveries:
                assert delivery.result(SECONDS).attempts == 1
            assert p.close().ok
            assert p.stats().callback_errors == 3
    assert len([text for text in caplog.messages if "callbacks were not called: no" in text]) == 2


@pytest.mark.parametrize("how", ["cancels", "pickles"])
def test_a_place_that_loses_callbacks(how: str, caplog: pytest.LogCaptureFixture) -> None:
    with Scripted() as server:
        p = make(server.target, callback_on=Losing(how))
        p.send_batch("s", [b"x"] * 250, on_delivery=print).result(SECONDS)
        p.close()
        assert p.stats().callback_errors == 250
    assert "were not called" in caplog.text


def test_work_that_a_pool_cancels_is_counted() -> None:
    gate = threading.Event()
    pool = ThreadPoolExecutor(1)
    pool.submit(gate.wait, SECONDS)
    with Scripted() as server:
        p = make(server.target, callback_on=pool)
        p.send("s", b"x", on_delivery=print).result(SECONDS)
        p.close()
        pool.shutdown(wait=False, cancel_futures=True)
        gate.set()
        assert p.stats().callback_errors == 1


def test_pools_of_processes_are_refused() -> None:
    class Own(ProcessPoolExecutor):
        pass

    for kind in (ProcessPoolExecutor, Own):
        pool = kind(1)
        for maker in (dataproxy.Producer, dataproxy.AsyncProducer):
            with pytest.raises(dataproxy.ConfigError, match="in another process") as refused:
                maker("tcp://127.0.0.1:1", group_id="g", callback_on=pool)
            assert refused.value.code == "BAD_CALLBACK_TARGET"
        pool.shutdown()


@RAISED
def test_a_loop_that_raises_does_not_end_the_worker(kind: type[BaseException]) -> None:
    worker = Worker("worker-under-test")
    gate = threading.Event()
    job = worker.submit(lambda: gate.wait(SECONDS))
    job._waiting.append((BadLoop(kind), None))  # type: ignore[arg-type]
    gate.set()
    after = threading.Event()
    worker.finish(after.set)
    assert after.wait(SECONDS)
    worker.wait_end()


@RAISED
def test_discovery_goes_on(logs: Callable[[logging.Handler], None], kind: type[BaseException]) -> None:
    logs(Hostile(kind, "emit"))
    asked = threading.Semaphore(0)
    with Scripted() as server, make(server.target) as producer:
        source = producer._source

        def ask(group: str, known: object) -> Any:
            asked.release()
            raise ZeroDivisionError

        def wait(_: float) -> bool:
            source._schedule.at_once(0.0)
            return next(waits)

        source._questions.ask = ask  # type: ignore[method-assign, assignment]
        waits = iter([False, False, False, True])
        source._pause.wait = wait  # type: ignore[method-assign]
        thread = threading.Thread(target=source._run)
        thread.start()
        thread.join(SECONDS)
        assert all(asked.acquire(timeout=0) for _ in range(3))


def test_ctrl_c_in_a_handler_goes_on_in_the_main_thread(logs: Callable[[logging.Handler], None]) -> None:
    logs(Hostile(KeyboardInterrupt, "emit"))
    with pytest.raises(KeyboardInterrupt):
        Log("dataproxy.test").warning("x")


def test_a_lost_record_is_told_once(logs: Callable[[logging.Handler], None], monkeypatch: pytest.MonkeyPatch) -> None:
    class Once(Hostile):
        def emit(self, record: logging.LogRecord) -> bool:
            if "lost" in record.getMessage():
                said.append(record.getMessage())
                return True
            return super().emit(record)

    said: list[str] = []
    monkeypatch.setattr("dataproxy.logs._told", -100.0)
    logs(Once(ValueError, "emit"))
    for _ in range(5):
        Log("dataproxy.test").info("x")
    assert len(said) == 1
    assert "raised ValueError" in said[0]


def test_records_name_their_callers(caplog: pytest.LogCaptureFixture) -> None:
    for write in (Log("dataproxy.test").warning, Log("dataproxy.test").exception):
        write("x %s", 1)
    Log("dataproxy.test").log(logging.WARNING, "x %s", 1)
    assert {record.exc_info for record in caplog.records if record.levelno == logging.WARNING} == {None}
    assert {(record.funcName, record.message) for record in caplog.records} == {
        ("test_records_name_their_callers", "x 1")
    }


@RAISED
def test_every_producer_is_closed_at_exit(
    logs: Callable[[logging.Handler], None], kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handlers of signals raise in the middle of each wait, log handlers for each record."""
    with Scripted(silent) as server:
        producers = [make(server.target, close_timeout=0.05) for _ in range(3)]
        for p in producers:
            p.send_nowait("s", b"x")
        monkeypatch.setattr(lifecycle, "_live", set(producers))
        monkeypatch.setattr(lifecycle, "_ending", False)
        if kind is not KeyboardInterrupt:
            logs(Hostile(kind, "emit"))
        times: dict[Producer, int] = {}

        def interrupted(self: Producer, seconds: float) -> bool:
            times[self] = times.get(self, 0) + 1
            if times[self] in (1, 3):
                raise kind("a signal")
            return Producer.__mro__[1]._wait_settled(self, seconds)

        monkeypatch.setattr(Producer, "_wait_settled", interrupted, raising=False)
        raised = contextlib.nullcontext() if kind in (SystemExit, KeyboardInterrupt) else pytest.raises(kind)
        with raised:
            lifecycle._close_all()
        assert all(p.closed and p.report().failed == 1 and p.report().pending == 0 for p in producers)
        assert sum(times.values()) >= (4 if kind is KeyboardInterrupt else 9)
        monkeypatch.setattr(lifecycle, "_ending", False)


def test_an_asyncio_loop_of_our_own_survives(logs: Callable[[logging.Handler], None]) -> None:
    from dataproxy.hub import Hub

    logs(Hostile(ValueError, "emit"))
    with Hub() as hub:
        server = hub._serving
        for error in (ValueError, SystemExit, KeyboardInterrupt):

            def fail(error: type[BaseException] = error) -> None:
                raise error

            server._loop.call_soon_threadsafe(fail)
        asked = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "alive"), server._loop)
        assert asked.result(SECONDS) == "alive"
        assert server._thread.is_alive()
