"""Start, stop, restart, fork, full disk: what a hub promises around its life."""

import asyncio
import errno
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
import uvloop

from dataproxy import AsyncProducer
from dataproxy.errors import ClosedError, ConfigError, ForkedError, HubError, StoreError
from dataproxy.hub import Hub, open_store
from tests.loopback.hub.peer import binary_frame, read_all, read_frame, wait_until

ROOT = Path(__file__).parents[3]
SERVE = """
import sys
from dataproxy.hub import Hub
hub = Hub(sys.argv[1])
print(hub.port, flush=True)
sys.stdin.read()
hub.close()
"""

CYCLES = """
import gc, os, resource, socket, sys, threading
from dataproxy.hub import Hub
from tests.loopback.hub.peer import binary_frame, read_frame

def cycle():
    with Hub(*sys.argv[1:], threads=2) as hub, socket.create_connection(("127.0.0.1", hub.port)) as one:
        one.sendall(binary_frame(1, [b"x" * 1000]))
        assert b"errCode" not in read_frame(one)
        list(hub.records("g"))

def held():
    gc.collect()
    return [threading.active_count(), len(os.listdir("/proc/self/fd"))]

def memory():
    return int(open_text("/proc/self/statm").split()[1]) * resource.getpagesize()

def open_text(path):
    with open(path) as file:
        return file.read()

for _ in range(5):
    cycle()
print(held(), flush=True)
before = memory()
for _ in range(20):
    cycle()
print(held())
print(memory() - before)
"""


def test_close_is_idempotent_and_use_after_it_is_refused():
    with Hub() as hub:
        port = hub.port
        assert hub.target == f"tcp://127.0.0.1:{port}"
        assert str(port) in repr(hub)
    hub.close()
    assert "closed" in repr(hub)
    for use in (hub.stats, hub.counts, lambda: hub.records("g"), lambda: hub.set_service("running")):
        with pytest.raises(ClosedError):
            use()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_hub_is_made_used_and_closed_inside_a_running_loop(run):
    async def main():
        with Hub() as hub:
            with pytest.raises(HubError, match="the Manager port cannot listen"):
                Hub(manager_port=hub.manager_port)
            async with AsyncProducer(hub.manager_url, group_id="g", linger=0) as producer:
                await producer.send("s", b"x")
            return [record.body for record in hub.records("g")]

    before = set(threading.enumerate())  # of which some, of other tests, may end meanwhile
    assert run(main()) == [b"x"]
    wait_until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("mode", ["memory", "durable"])
def test_hubs_that_come_and_go_leave_nothing_behind(tmp_path, mode):
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", CYCLES]
    if mode == "durable":
        command.append(str(tmp_path / "store"))
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, last, grown = map(json.loads, done.stdout.splitlines())
    assert first == last, "threads and open files after the first cycles and after the last"
    # A sanitizer keeps freed memory for a while to catch its use.
    assert grown < (256 << 20 if os.environ.get("DATAPROXY_SANITIZER") else 4 << 20)


def test_an_address_in_use_is_named(start_hub):
    first = start_hub()
    with pytest.raises(HubError, match=f"producers' port cannot listen on 127.0.0.1:{first.port}") as caught:
        Hub(port=first.port)
    assert caught.value.details["errno"] == errno.EADDRINUSE
    with pytest.raises(HubError, match=f"Manager port cannot listen on 127.0.0.1:{first.manager_port}"):
        Hub(manager_port=first.manager_port)
    assert first.stats()["connections"] == 0


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_that_is_not_ours(host):
    with pytest.raises(HubError, match=r"host|address"):
        Hub(host=host, insecure=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prot": 1}, "did you mean 'port'"),
        ({"port": 70000}, "65535"),
        ({"load": "65535"}, "load"),
        ({"load": "busy"}, "load"),
        ({"profile": "lax"}, "strict"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ConfigError, match=text):
        Hub(**options)


def test_it_cannot_be_pickled_or_used_in_a_child(hub):
    with pytest.raises(HubError, match="pickled"):
        pickle.dumps(hub)
    child = os.fork()
    if child == 0:
        try:
            hub.stats()
        except ForkedError:
            hub.close()
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert hub.stats()["connections"] == 0


def test_two_hubs_cannot_share_a_store(tmp_path, start_hub):
    start_hub(tmp_path / "store")
    with pytest.raises(StoreError, match="in use"):
        Hub(tmp_path / "store")


def test_a_hub_that_is_forgotten_warns():
    hub = Hub()
    with pytest.warns(ResourceWarning, match="was not closed"):
        del hub


def test_closing_answers_what_was_accepted(tmp_path):
    hub = Hub(tmp_path / "store")
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
        one.sendall(b"".join(binary_frame(i, [b"x" * 1000]) for i in range(200)))
        wait_until(lambda: hub.stats()["frames"] == 200)
        hub.close()
        replies = read_all(one)
    with open_store(tmp_path / "store") as store:
        assert store.counts()["g", "s"].records == 200
    assert replies.count(b"dpIp=") == 200
    assert b"errCode" not in replies


def start_process(directory: Path) -> tuple[subprocess.Popen, int]:
    """Start a durable hub in a process of its own and return it with its port."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    return process, int(process.stdout.readline())


def load_until_it_dies(port: int, first: int, acked: list[int], enough: threading.Event) -> None:
    """Send numbered messages, collect the numbers whose ack came, until the connection breaks."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
            number = first
            while True:
                one.sendall(b"".join(binary_frame(n, [b"%d" % n]) for n in range(number, number + 50)))
                for _ in range(50):
                    reply = read_frame(one)
                    assert b"errCode" not in reply
                    acked.append(int.from_bytes(reply[5:9], "big"))
                number += 50
                if number - first >= 500:
                    enough.set()
    except (OSError, EOFError):
        return


def test_a_killed_hub_keeps_everything_it_acknowledged(tmp_path):
    acked: list[int] = []
    for generation in range(2):
        process, port = start_process(tmp_path / "store")
        enough = threading.Event()
        client = threading.Thread(target=load_until_it_dies, args=(port, generation * 10_000_000, acked, enough))
        client.start()
        assert enough.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        client.join(30)
        process.stdin.close()
        process.stdout.close()
    process, port = start_process(tmp_path / "store")
    try:
        with open_store(tmp_path / "store") as store:
            kept = [int(record.body) for record in store.records("g", "s")]
            offsets = [record.offset for record in store.records("g", "s")]
    finally:
        process.stdin.close()
        process.stdout.close()
        assert process.wait(30) == 0
    assert len(acked) >= 1000
    assert set(acked) <= set(kept)
    assert len(kept) == len(set(kept))
    assert offsets == list(range(len(offsets)))


def test_a_full_store_refuses_with_114_and_recovers(tmp_path):
    hub = Hub(
        tmp_path / "store", max_store_bytes=2 << 20, retention_age=1000.0, compress_entries=False, read_idle=86400.0
    )
    with hub, socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
        taken = 0
        while True:
            one.sendall(binary_frame(taken, [os.urandom(60_000)]))
            reply = read_frame(one)
            if b"errCode" in reply:
                break
            taken += 1
            assert taken < 100
        assert b"errCode=114&errMsg=Put msg event to channel failure" in reply
        assert reply[5:9] == taken.to_bytes(4, "big"), "the refusal names its request"
        one.sendall(bytes.fromhex("0000000101"))
        assert one.recv(5) == bytes.fromhex("0000000101"), "the hub runs on"
        assert hub.counts()["g", "s"].entries == taken
        assert hub.stats()["refused"] == {114: 1}
    with Hub(tmp_path / "store", max_store_bytes=8 << 20) as again:
        with socket.create_connection(("127.0.0.1", again.port), timeout=30) as one:
            one.sendall(binary_frame(1, [os.urandom(60_000)]))
            assert b"errCode" not in read_frame(one)
        offsets = [record.offset for record in again.records("g", "s")]
    assert offsets == list(range(taken + 1))


def test_the_manager_server_does_not_depend_on_the_loop_of_the_application(start_hub, monkeypatch):
    """A policy, such as uvloop's, decides what ``new_event_loop`` gives."""
    monkeypatch.setattr(asyncio, "new_event_loop", uvloop.new_event_loop)
    hub = start_hub()
    for _ in range(2):
        with urllib.request.urlopen(f"{hub.manager_url}/healthz", timeout=30) as answer:
            assert answer.status == 200
    monkeypatch.setattr(asyncio, "SelectorEventLoop", uvloop.new_event_loop)
    with urllib.request.urlopen(f"{start_hub().manager_url}/healthz", timeout=30) as answer:
        assert answer.status == 200, "nor on the class of its transports"
