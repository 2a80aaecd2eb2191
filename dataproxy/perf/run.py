"""One run of a load: sends by the plan, collects the figures of every second, and returns the result."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dataproxy import AsyncProducer, Producer
from dataproxy._core.perf.generator import Generator
from dataproxy._core.perf.histogram import Histogram
from dataproxy.errors import ConfigError, TransportError
from dataproxy.messagetypes import frame_family, joins_lines
from dataproxy.perf.bodies import make_bodies, read_lines
from dataproxy.perf.loop import loop_name, run_in_loop, send_by_tasks
from dataproxy.perf.result import Result, Second
from dataproxy.perf.watch import Watch, describe_machine
from dataproxy.shown import without_secrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from dataproxy import Stream
    from dataproxy.perf.hub import HubFigures
    from dataproxy.perf.plan import Plan

__all__ = ["PATHS", "Load", "run_load"]

T = TypeVar("T")

#: Ways of sending; the first one makes no Python call for a message.
PATHS: Final = ("send_nowait", "send", "send_batch", "send_arrow", "asyncio")
_TICK: Final = 0.02  # seconds between two checks for results
_LEAD: Final = 0.05  # seconds from the start of the threads to the first message
_CONNECT: Final = 10.0  # seconds that the first connection may take
_END: Final = 60.0  # seconds in which a thread must end
_ROWS: Final = 4096  # at least so many messages are prepared for calls before they repeat


@dataclass(frozen=True, slots=True)
class Load:
    """Describe a load: the messages, the target, and the way of sending.

    ``options`` are those of the producer.  ``size`` is that of the bodies (see ``make_bodies``), ``lines`` a file whose
    lines are sent instead.  ``batch`` messages are due at the same time and sent in one call.  With ``closed_loop``
    each thread waits for the result of a message before it sends the next one, until the plan's time is over; the
    plan's rates have no effect.  With path ``asyncio`` each thread runs an event loop.  ``max_lag`` in seconds.
    """

    target: str
    plan: Plan
    group: str = "perf"
    path: str = PATHS[0]
    threads: int = 1
    streams: int = 1
    keys: int = 0
    size: str = "100"
    lines: str = ""
    batch: int = 1
    closed_loop: bool = False
    max_lag: float = 0.001
    options: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ConfigError if options do not fit together."""
        if self.path not in PATHS:
            raise ConfigError(f"path {self.path!r} is unknown", hint=f"choose one of {', '.join(PATHS)}")
        for name in ("threads", "streams", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint="choose 1 or more")
        if self.path in ("send", "asyncio") and self.batch > 1:
            raise ConfigError(f"path {self.path} has no batches", hint="use send_nowait, send_batch or send_arrow")
        if self.closed_loop and self.path != PATHS[0]:
            raise ConfigError("a closed loop is possible with path send_nowait only", hint="leave --path out")
        if self.keys and self.options.get("ordering") != "key":
            raise ConfigError("keys need the producer's ordering by key", hint="give -o ordering=key")
        if self.keys and self.path == "send_arrow":
            raise ConfigError("path send_arrow has one key for each call", hint="use send_nowait, send or send_batch")


def run_load(load: Load, *, hub: HubFigures | None = None, watch: Callable[[Second], object] | None = None) -> Result:
    """Run a load and return its Result; ``watch`` is called with each Second when it ends.

    Ctrl-C ends the sending; the run then waits for the results of sent messages.  Raises ConfigError, TransportError
    when no proxy could be reached, and what the producer raises.
    """
    load.check()
    bodies = read_lines(load.lines) if load.lines else make_bodies(load.size, load.plan.seed)
    kind = AsyncProducer if load.path == "asyncio" else Producer
    producer = kind(load.target, group_id=load.group, **load.options)
    config = producer.config
    if joins_lines(frame_family(config.message_type, config.joined_lines, config.protocol)):
        hub = None  # packs of lines are one record each: the hub counts packs, not messages
    try:
        if isinstance(producer, AsyncProducer):
            run_in_loop(producer.open())
        _connect(producer)
        runners = [_Runner(producer, load, bodies, number) for number in range(load.threads)]
        watcher = Watch(producer, [runner.generator for runner in runners], hub, watch)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        stopped, seconds = _drive(producer, load, runners, watcher)
        for runner in runners:
            if runner.error is not None:
                raise runner.error
        counts, stats = watcher.counts(), producer.stats()
        counts |= {name: getattr(stats, name) for name in ("pending", "retries", "duplicates_possible")}
        stored = hub.settled(counts["delivered"] + counts["sent"]) if hub is not None else None
        watcher.series[-1] = replace(watcher.series[-1], hub_stored=stored)
        latencies, lags = Histogram(), Histogram()
        for runner in runners:
            runner.generator.add_latencies(latencies)
            runner.generator.add_lags(lags)
        return Result(
            started=started, load=_describe(load), options={k: str(v) for k, v in load.options.items()},
            machine=describe_machine(), planned=load.plan.messages, seconds=seconds, max_lag=load.max_lag,
            counts=counts, stored=stored, stopped=stopped, latencies=latencies, lags=lags, series=watcher.series,
        )  # fmt: skip
    finally:  # undelivered messages are counted in the result
        if isinstance(producer, AsyncProducer):
            run_in_loop(producer.close())
        else:
            producer.close()


def _describe(load: Load) -> dict[str, Any]:
    return {
        "target": without_secrets(load.target), "plan": load.plan.text, "arrivals": load.plan.arrivals,
        "seed": load.plan.seed, "plan_seconds": load.plan.seconds, "group": load.group, "path": load.path,
        "threads": load.threads, "streams": load.streams, "keys": load.keys,
        "size": f"lines of {load.lines}" if load.lines else load.size, "batch": load.batch,
        "closed_loop": load.closed_loop, **({"loop": loop_name()} if load.path == "asyncio" else {}),
    }  # fmt: skip


def _connect(producer: Producer | AsyncProducer) -> None:
    """Wait for the first connection, so that connecting is not part of a latency.  Raises TransportError."""
    deadline = time.monotonic() + _CONNECT
    while not any(connection.state == "active" for connection in producer.stats().connections):
        if time.monotonic() > deadline:
            raise TransportError(
                f"no proxy could be reached within {_CONNECT:g} s", hint="check the address, and that the proxy runs"
            )
        time.sleep(_TICK)


class _Runner(threading.Thread):
    """Run one thread's share of a load."""

    def __init__(self, producer: Producer | AsyncProducer, load: Load, bodies: list[bytes], number: int) -> None:
        super().__init__(name=f"perf-{number}", daemon=True)
        self._load = load
        self._start_us = 0
        self.error: BaseException | None = None
        names = range(number, load.streams, load.threads) if load.streams >= load.threads else [number % load.streams]
        self._producer = producer
        plain: Producer = producer._inner if isinstance(producer, AsyncProducer) else producer
        self._streams = [plain.stream(f"{load.group}_{name}") for name in names]
        self._keys = [f"key_{key}" for key in range(number, load.keys, load.threads)] or ["key_0"] * bool(load.keys)
        self._bodies = bodies[number % len(bodies) :] + bodies[: number % len(bodies)]
        self.generator = Generator(
            self._streams, self._bodies, pieces=load.plan.share(load.threads), keys=self._keys,
            poisson=load.plan.arrivals == "poisson", seed=load.plan.seed * 1_000_003 + number,
            phase=number / load.threads, each=load.batch,
        )  # fmt: skip

    def begin(self, start_us: int) -> None:
        """Start the thread; its plan begins at ``start_us``, a value of ``time.monotonic_ns() // 1000``."""
        self._start_us = start_us
        self.start()

    def run(self) -> None:
        """Send the plan; an exception is kept in ``error``."""
        load, start_us = self._load, self._start_us
        try:
            if load.closed_loop:
                self.generator.run_closed(start_us, start_us + round(load.plan.seconds * 1e6))
            elif load.path == "send_nowait":
                self.generator.run(start_us)
            elif isinstance(self._producer, AsyncProducer):
                run_in_loop(send_by_tasks(self.generator, start_us, self._awaited(self._producer), self._bodies))
            else:
                self.generator.run_calls(start_us, *self._calls())
        except BaseException as error:  # noqa: BLE001 - raised again by the main thread
            self.error = error

    def _calls(self) -> tuple[list[Callable[[Any], object]], list[Any]]:
        """Return the calls and their arguments, each to be used in turn."""
        load = self._load
        if load.path == "send":
            return [_keyed(stream.send, key) for stream, key in self._places()], self._bodies
        lists = [self._slice(at * load.batch) for at in range(max(_ROWS // load.batch, 1))]
        if load.path == "send_batch":
            return [_keyed(stream.send_batch, key) for stream, key in self._places()], lists
        import pyarrow as pa

        tables = [pa.table({"body": pa.array(bodies, pa.binary())}) for bodies in lists]
        return [stream.send_arrow for stream in self._streams], tables

    def _awaited(self, producer: AsyncProducer) -> list[Callable[[bytes], Awaitable[object]]]:
        """Return the calls whose results the tasks await."""
        handles = {stream.stream_id: producer.stream(stream.stream_id) for stream in self._streams}
        return [_keyed(handles[stream.stream_id].send, key) for stream, key in self._places()]

    def _places(self) -> Iterator[tuple[Stream, str | None]]:
        """Yield each stream with each key, in turn as the compiled path takes them."""
        if not self._keys:
            yield from ((stream, None) for stream in self._streams)
            return
        for number in range(len(self._keys) * len(self._streams)):
            yield self._streams[number % len(self._streams)], self._keys[number % len(self._keys)]

    def _slice(self, at: int) -> list[bytes]:
        return [self._bodies[(at + i) % len(self._bodies)] for i in range(self._load.batch)]


def _keyed(call: Callable[..., T], key: str | None) -> Callable[[Any], T]:
    """Return a call with one argument, the body, for a call with a key."""
    if key is None:
        return call
    return lambda argument: call(argument, key=key)


def _drive(producer: Producer | AsyncProducer, load: Load, runners: list[_Runner], watcher: Watch) -> tuple[str, float]:
    """Run all threads to the end; return the name of an interruption ("" without one), and the seconds of the run.

    These count to the last result, or to the plan's end if that is later.
    """
    stopped = ""
    start = time.monotonic_ns() // 1000 + round(_LEAD * 1e6)
    watcher.begin(start / 1e6)
    for runner in runners:
        runner.begin(start)
    try:
        while any(runner.is_alive() for runner in runners):
            watcher.look()
            if any(runner.error is not None for runner in runners):
                break
            time.sleep(_TICK)
    except KeyboardInterrupt as interruption:
        stopped = type(interruption).__name__  # SIGTERM raises another class in the command line
    for runner in runners:
        runner.generator.stop()
    for runner in runners:
        # Its last call may wait for room; with an event loop, its tasks then also wait for their results.
        runner.join(float(producer.config.max_block) + float(producer.config.delivery_timeout) + _END)
    deadline = time.monotonic() + float(producer.config.delivery_timeout) + 5
    with contextlib.suppress(KeyboardInterrupt):
        while producer.stats().pending and time.monotonic() < deadline:
            watcher.look()
            time.sleep(_TICK)
    ended = time.monotonic()
    watcher.end()
    seconds = ended - start / 1e6
    return stopped, seconds if stopped else max(seconds, load.plan.seconds)  # the gap after the last message counts
