"""Loads by tasks of an event loop: planned times, lateness of a busy loop, errors of calls, and which loop it is."""

import asyncio
import time
from typing import Any

import pytest

import dataproxy
from dataproxy._core.perf.generator import Generator
from dataproxy.perf import Load, parse_plan, run_load, text_report
from dataproxy.perf.loop import loop_name, run_in_loop, send_by_tasks
from tests.process.perf.test_perf_run import BODY, histograms


def run_tasks(producer: dataproxy.AsyncProducer, start_us: int, call: Any = None) -> Generator:
    """Send 100 messages in half a second by tasks of an event loop; return what has sent them, with all results."""

    async def main() -> Generator:
        async with producer:
            generator = Generator([producer._inner.stream("s")], [BODY], pieces=[(0.5, 200, 200, 0)])
            await send_by_tasks(generator, start_us, [call or producer.stream("s").send], [BODY])
            return generator

    return run_in_loop(main())


def test_a_message_of_a_task_counts_from_its_planned_time_until_its_await_returns() -> None:
    """A plan that began a second ago, and awaits that return 0.2 s after the result."""
    with dataproxy.hub.Hub() as hub:
        producer = dataproxy.AsyncProducer(hub.target, group_id="g")

        async def late(body: bytes) -> None:
            await producer.send("s", body)
            await asyncio.sleep(0.2)

        latencies, lags = histograms(run_tasks(producer, time.monotonic_ns() // 1000 - 1_000_000, late))
    assert len(latencies) == len(lags) == 100
    assert (lags.percentile(0) or 0) >= 499_000  # a task that was made late is late by the generator's fault
    assert (latencies.percentile(0) or 0) >= 699_000


def test_a_loop_that_is_busy_is_late_by_its_own_fault() -> None:
    with dataproxy.hub.Hub() as hub:
        producer = dataproxy.AsyncProducer(hub.target, group_id="g")

        async def slow(body: bytes) -> None:
            time.sleep(0.01)  # noqa: ASYNC251 - what holds up the loop
            await producer.send("s", body)

        latencies, lags = histograms(run_tasks(producer, time.monotonic_ns() // 1000, slow))
    assert (lags.percentile(100) or 0) >= 450_000  # 100 calls of 10 ms in 0.5 s of a plan
    assert (latencies.percentile(50) or 0) >= (lags.percentile(50) or 0)


def test_a_plan_that_no_loop_can_keep_is_not_valid() -> None:
    """A million tasks a second."""
    with dataproxy.hub.Hub() as hub:
        result = run_load(Load(hub.target, parse_plan("1M:30ms"), path="asyncio"))
    assert result.counts["delivered"] == result.counts["due"] == 30_000
    assert text_report(result).startswith("INVALID: at p50 the generator itself was")


def test_what_a_call_of_a_task_raises_ends_the_run() -> None:
    with dataproxy.hub.Hub() as hub:
        producer = dataproxy.AsyncProducer(hub.target, group_id="g")

        async def wrong(body: bytes) -> None:
            await producer.send("s", b"")

        with pytest.raises(dataproxy.InvalidMessageError):
            run_tasks(producer, time.monotonic_ns() // 1000, wrong)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_uvloop_is_used_where_it_is_installed(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if loop == "asyncio":
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    async def here() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert loop_name() == loop
    assert run_in_loop(here()).startswith(loop)
    with dataproxy.hub.Hub() as hub:
        result = run_load(Load(hub.target, parse_plan("500:200ms"), path="asyncio", max_lag=60))
    assert result.counts["delivered"] == 100
    assert result.load["loop"] == loop and f"event loop {loop}" in text_report(result)
