"""Consumers and processes: exits, signals and forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataproxy.errors import ForkedError
from tests.support.consumers import Opener, drain, next_pack
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS

ROOT = Path(__file__).parents[3]

OPEN = """
import sys
from dataproxy.consumer.consumer import Consumer
consumer = Consumer(sys.argv[1], group="g", topics="one", not_found_wait=0.02, release_wait=0)
consumer.wait_ready()
"""
OPEN_ASYNC = """
import asyncio, sys
from dataproxy.consumer.asynchronous import AsyncConsumer
async def work():
    consumer = AsyncConsumer(sys.argv[1], group="g", topics="one", not_found_wait=0.02, release_wait=0)
    pack = await consumer.poll(30)
    print("got", pack.bodies(), flush=True)
    return consumer
kept = asyncio.run(work())
"""


def start(code: str, tube: TubeServer) -> subprocess.Popen[str]:
    """Run a program that reads from the server."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, tube.target], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a program's end; return its code, and what it wrote."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.fixture
def tube() -> Iterator[TubeServer]:
    with TubeServer(topics={"one": 1, "three": 3}, balance_s=0.0, member_limit_s=1.0, lock_limit_s=1.0) as server:
        server.put("one", b"a")
        yield server


def test_an_exit_without_close_leaves_the_group(tube: TubeServer) -> None:
    process = start(OPEN + "pack = consumer.poll(30); print(pack.bodies())", tube)
    assert ended(process) == (0, "[b'a']\n", "")
    assert tube.members("g") == []
    assert [call.method for call in tube.calls][-2:] == ["UnregisterRequestC2B", "CloseRequestC2M"]


def test_an_exit_without_close_in_asyncio_leaves_the_group(tube: TubeServer) -> None:
    assert ended(start(OPEN_ASYNC, tube)) == (0, "got [b'a']\n", "")
    assert [call.method for call in tube.calls][-2:] == ["UnregisterRequestC2B", "CloseRequestC2M"]


def test_a_daemon_thread_that_polls_is_quiet_at_the_end(tube: TubeServer) -> None:
    code = f"""{OPEN}
import threading
def work():
    while True:
        consumer.poll()
threading.Thread(target=work, daemon=True).start()
"""
    assert ended(start(code, tube)) == (0, "", "")
    assert tube.members("g") == []


def test_ctrl_c_ends_a_poll(tube: TubeServer) -> None:
    code = f"""{OPEN}
consumer.poll(30).confirm()
try:
    print("ready", flush=True)
    consumer.poll()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = start(code, tube)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert ended(process) == (0, "interrupted\n", "")
    assert [call.method for call in tube.calls][-1] == "CloseRequestC2M"


def test_ctrl_c_ends_a_block(tube: TubeServer) -> None:
    code = """
import sys
from dataproxy.consumer.consumer import Consumer
with Consumer(sys.argv[1], group="g", topics="one", release_wait=0) as consumer:
    for record in consumer.records():
        print(record.body, flush=True)
"""
    process = start(code, tube)
    assert process.stdout is not None
    assert process.stdout.readline() == "b'a'\n"
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert (status, "KeyboardInterrupt" in err) == (-signal.SIGINT, True)
    assert tube.members("g") == []


def test_a_killed_process_is_replaced(tube: TubeServer, opened: Opener) -> None:
    process = start(OPEN + "print(consumer.poll(30).bodies(), flush=True); consumer.poll()", tube)
    assert process.stdout is not None
    assert process.stdout.readline() == "[b'a']\n"
    consumer = opened()
    assert consumer.poll(0.05) is None
    process.kill()
    ended(process)
    assert drain(consumer, 1) == [b"a"]


def in_child(body: Callable[[], None]) -> int:
    """Fork, and return the status of a child that calls a function."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_may_not_use_it(tube: TubeServer, opened: Opener) -> None:
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)
    consumer = opened(["one", "three"])
    pack = next_pack(consumer)

    def body() -> None:
        calls = [
            consumer.poll, consumer.wait_ready, consumer.close, consumer.stats, consumer.lag, consumer.position,
            consumer.assignment, consumer.pause, consumer.resume, pack.confirm, pack.rollback,
            lambda: next(iter(consumer)), lambda: next(consumer.records()),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(ForkedError):
                call()
        assert pack.bodies() == [one.body for one in pack]
        assert len(pack.to_arrow()) == len(pack)
        assert "Consumer" in repr(consumer)

    assert in_child(body) == 0
    pack.confirm()
    drain(consumer, 3)
    assert consumer.stats().connects == 2


def test_the_end_of_a_forked_child_does_not_disturb_the_parent() -> None:
    """The servers have their usual patience: with a sanitizer a process takes more than a second to end."""
    code = f"""{OPEN}
import os, time
pack = consumer.poll(30)
child = os.fork()
if child == 0:
    del pack, consumer
    sys.exit(0)          # with the handlers of an exit
assert os.waitpid(child, 0)[1] == 0
pack.confirm()
print(pack.outcome)
consumer.close()
"""
    with TubeServer(topics={"one": 1}, balance_s=0.0) as server:
        server.put("one", b"a")
        assert ended(start(code, server)) == (0, "confirmed\n", "")
        assert [call.method for call in server.calls].count("CloseRequestC2M") == 1


def test_a_child_opens_its_own(tube: TubeServer) -> None:
    code = f"""{OPEN}
import os
consumer.poll(30).confirm()
child = os.fork()
if child == 0:
    with Consumer(sys.argv[1], group="other", topics="one", release_wait=0) as mine:
        print(mine.poll(30).bodies(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
consumer.close()
"""
    assert ended(start(code, tube)) == (0, "[b'a']\n", "")
