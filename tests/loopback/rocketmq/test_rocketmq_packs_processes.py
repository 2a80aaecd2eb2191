"""`dataproxy.Consumer` at a hub that pushes, and processes: exits, signals and forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataproxy import Consumer
from dataproxy.errors import ForkedError
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer
from tests.support.waiting import SECONDS, eventually

ROOT = Path(__file__).parents[3]
OPEN = """
import sys
from dataproxy import Consumer
consumer = Consumer(sys.argv[1], group="g", topics="T", release_wait=0)
consumer.wait_ready(30)
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub, Producer(hub.rocketmq_target, "p") as producer:
        producer.send("T", b"a").result(SECONDS)
        yield hub


def start(code: str, hub: Hub) -> subprocess.Popen[str]:
    """Run a program that reads from the hub."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, hub.rocketmq_target], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a program's end; return its code, and what it wrote."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, out, err


def left(hub: Hub) -> bool:
    """Tell whether nobody is in a group any more, by the members' own leave: no connection was cut."""
    return hub.stats()["rocketmq"]["push_sessions"] == 0


def test_an_exit_without_close_leaves_the_group(hub: Hub) -> None:
    assert ended(start(OPEN + "pack = consumer.poll(30); print(pack.bodies())", hub)) == (0, "[b'a']\n", "")
    assert left(hub)


def test_no_package_for_tubemq_is_loaded(hub: Hub) -> None:
    code = OPEN + "consumer.close(); print([one for one in sys.modules if 'protobuf' in one])"
    assert ended(start(code, hub)) == (0, "[]\n", "")


def test_ctrl_c_ends_a_poll_and_a_block(hub: Hub) -> None:
    for block in ("consumer.poll()", "next(consumer.records())"):
        code = f"""{OPEN}
consumer.pause()
try:
    print("ready", flush=True)
    {block}
    {block.replace("poll()", "poll(30)")}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
        process = start(code, hub)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert ended(process) == (0, "interrupted\n", "")
        assert left(hub)


def test_a_killed_process_is_replaced(hub: Hub) -> None:
    process = start(OPEN + "print(consumer.poll(30).bodies(), flush=True); consumer.poll(60)", hub)
    assert process.stdout is not None
    assert process.stdout.readline() == "[b'a']\n"
    with Consumer(hub.rocketmq_target, group="g", topics="T") as consumer:
        process.kill()
        ended(process)
        pack = next(one for one in consumer if one)
        assert pack.bodies() == [b"a"]
        pack.confirm()
        assert eventually(lambda: len(consumer.assignment()) == 4)


def test_the_end_of_a_forked_child_does_not_disturb_the_parent(hub: Hub) -> None:
    code = f"""{OPEN}
import os
pack = consumer.poll(30)
child = os.fork()
if child == 0:
    del pack, consumer
    sys.exit(0)          # with the handlers of an exit
assert os.waitpid(child, 0)[1] == 0
child = os.fork()
if child == 0:
    with Consumer(sys.argv[1], group="other", topics="T", release_wait=0) as mine:
        print(mine.poll(30).bodies(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
pack.confirm()
print(pack.outcome)
consumer.close()
"""
    assert ended(start(code, hub)) == (0, "[b'a']\nconfirmed\n", "")
    assert left(hub)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_inherits_no_consumer(hub: Hub) -> None:
    with Consumer(hub.rocketmq_target, group="g", topics="T") as consumer:
        pack = next(iter(consumer))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for call in (
                    consumer.poll, consumer.assignment, consumer.lag, consumer.stats, consumer.close, consumer.pause,
                    pack.confirm, pack.rollback, lambda: consumer.seek(pack.partition, 0), consumer.wait_ready,
                ):  # fmt: skip
                    with pytest.raises(ForkedError, match="opened before the process was forked"):
                        call()
                assert pack.bodies() == [b"a"]
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        pack.confirm()
        assert pack.outcome == "confirmed"
