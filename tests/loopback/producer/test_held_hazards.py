"""Held bodies under what can go wrong around them: capsules that others empty, forks, ends of waits, late executors."""

import gc
import os
import random
import signal
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

import dataproxy
from dataproxy.errors import BufferFullError, ClosedError
from tests.support.scripted import Scripted, ack, silent

HELD = 4096
SECONDS = 20


def body(n, seed=0):
    return random.Random(f"{seed} {n}").randbytes(n)


def wait_for(condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


@pytest.mark.parametrize("how", ["tuple", "cached"])
def test_an_array_whose_capsule_others_have(how):
    """Another consumer moves the array out of a capsule that the caller passed; one made for the call is empty."""
    bodies = [body(65_536, i) for i in range(40)]
    capsules = pa.array(bodies, pa.binary()).__arrow_c_array__()

    class Cached:
        def __arrow_c_array__(self, requested_schema=None):
            return capsules

    options = {"linger": 30, "batch_bytes": 8 << 20, "max_frame_bytes": 16 << 20}
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g", **options) as p:
        p.send_arrow("s", capsules if how == "tuple" else Cached())
        if how == "tuple":
            other = pa.Array._import_from_c_capsule(*capsules)  # the capsule owns nothing from here on
            del other
        else:
            with pytest.raises(dataproxy.errors.InvalidMessageError, match="already consumed"):
                p.send_arrow("s", Cached())
        gc.collect()
        noise = [pa.array([b"\xee" * 65_536] * 40, pa.binary()) for _ in range(4)]
        p.flush(SECONDS)
        assert server.bodies() == bodies
        assert noise


def test_what_comes_back_while_others_are_given_back():
    first, second = body(100_000), body(HELD)
    begun, done = threading.Event(), threading.Event()

    class Slow:
        def __init__(self):
            self.array = pa.array([first], pa.binary())

        def __arrow_c_array__(self, requested_schema=None):
            return self.array.__arrow_c_array__()

        def __del__(self):  # on the dispatcher's thread, as long as giving back much memory takes
            begun.set()
            done.wait(SECONDS)

    with Scripted(silent) as server:
        p = dataproxy.Producer(server.target, group_id="g", linger=0, delivery_timeout="60s", buffer_bytes=600_000)
        try:
            p.wait_ready(SECONDS)
            before = sys.getrefcount(second)
            # No calls by name: with them the dispatcher looks every five seconds.  Two streams, so two frames.
            p.stream("s").send_nowait(second)
            p.stream("t").send_arrow(Slow())
            server.wait_frames(2)
            frames = {first[:100] in frame: (number, frame) for number, frame in server.frames}
            number, frame = frames[True]
            server.peers[number].send(ack(frame))  # an eighth of the buffer: the dispatcher is woken
            assert begun.wait(SECONDS)
            number, frame = frames[False]
            server.peers[number].send(ack(frame))  # now nothing is under way
            wait_for(lambda: p.stats().pending == 0)
            done.set()
            wait_for(lambda: sys.getrefcount(second) == before)
        finally:
            done.set()
            p.close(timeout=0)


def test_bodies_that_were_given_up_are_bounded():
    """An executor that gets the processor last gives its packs back late; what it has is bounded all the same."""
    size, limit = 1_000_000, 4 << 20
    with Scripted(silent) as server:
        p = dataproxy.Producer(
            server.target, group_id="g", buffer_bytes=limit, batch_bytes=1 << 18, max_frame_bytes=2 << 20,
            on_full="drop_oldest", undelivered_bytes=0, linger=0, delivery_timeout="60s",
        )  # fmt: skip
        s = p.stream("s")
        s.send_nowait(b"x")
        server.wait_frames(1)
        cores = os.sched_getaffinity(0)
        tasks = [int(task.name) for task in Path("/proc/self/task").iterdir()]
        for task in tasks:
            os.sched_setaffinity(task, {min(cores)})
        for thread in threading.enumerate():
            if thread.name.startswith("dataproxy-exec"):
                os.sched_setscheduler(thread.native_id, os.SCHED_IDLE, os.sched_param(0))
        tracemalloc.start()
        try:
            for _ in range(3000):
                s.send_nowait(bytes(size))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            for task in tasks:
                os.sched_setaffinity(task, cores)
            p.close(timeout=0)
        # Nine eighths and 4 MiB, and as much again as the buffer and 4 MiB for what was given up (decision 12).
        assert peak <= 2 * limit + limit // 8 + (8 << 20) + 4 * size


@pytest.mark.parametrize("how", ["batch", "mixed", "single", "view", "arrow"])
@pytest.mark.parametrize("end", ["ctrl-c", "close", "full"])
def test_calls_that_end_while_they_wait_for_room(how, end):
    bodies = [body(50_000, i) for i in range(30)]
    before = [sys.getrefcount(one) for one in bodies]
    arrow = pa.total_allocated_bytes()
    with Scripted(silent) as server:
        p = dataproxy.Producer(
            server.target, group_id="g", buffer_bytes=500_000, batch_bytes=100_000, linger=0, undelivered_bytes=0,
            delivery_timeout="60s", max_block="300ms" if end == "full" else "60s",
        )  # fmt: skip
        s = p.stream("s")
        if end == "ctrl-c":
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        if end == "close":
            threading.Timer(0.3, p.close, kwargs={"timeout": 0}).start()
        calls = {
            "batch": lambda: s.send_batch(bodies),
            "mixed": lambda: s.send_batch([*bodies, *[b"x"] * 5]),
            "arrow": lambda: s.send_arrow(pa.array(bodies, pa.binary())),
            "single": lambda: [s.send_nowait(bodies[i]) for i in range(30)],
            "view": lambda: [s.send_nowait(memoryview(bodies[i])) for i in range(30)],
        }
        with pytest.raises((KeyboardInterrupt, ClosedError, BufferFullError)):
            calls[how]()
        p.close(timeout=0)
        gc.collect()
        wait_for(lambda: [sys.getrefcount(one) for one in bodies] == before and pa.total_allocated_bytes() <= arrow)
