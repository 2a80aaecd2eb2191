"""Limits of the DataProxy port: connections, silence, unread replies, the queue, memory."""

import contextlib
import multiprocessing
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loopback.hub.peer import binary_frame, read_all, read_exactly, read_frame, wait_until

HEARTBEAT = bytes.fromhex("0000000101")


def test_connections_over_the_limit_are_closed_at_once(start_hub, connect):
    hub = start_hub(max_connections=3)
    kept = [connect(hub) for _ in range(3)]
    for connection in kept:
        connection.sendall(HEARTBEAT)
        assert read_exactly(connection, 5) == HEARTBEAT
    assert read_all(connect(hub)) == b""
    assert hub.stats()["closed"]["refused"] == 1
    kept.pop().close()
    wait_until(lambda: hub.stats()["connections"] == 2)
    late = connect(hub)
    late.sendall(HEARTBEAT)
    assert read_exactly(late, 5) == HEARTBEAT


def test_silent_connections_are_closed_and_busy_ones_kept(start_hub, connect):
    hub = start_hub(read_idle=180.0)
    silent, busy = connect(hub), connect(hub)
    for connection in (silent, busy):
        connection.sendall(HEARTBEAT)
        assert read_exactly(connection, 5) == HEARTBEAT
    hub._core.advance_clock(170)
    busy.sendall(HEARTBEAT)
    assert read_exactly(busy, 5) == HEARTBEAT
    hub._core.advance_clock(11)
    assert read_all(silent) == b""
    busy.sendall(HEARTBEAT)
    assert read_exactly(busy, 5) == HEARTBEAT
    assert hub.stats()["closed"]["idle"] == 1


@pytest.mark.parametrize(("profile", "survives"), [("strict", True), ("compat", False)])
def test_parts_of_a_frame_count_as_life_in_strict_only(start_hub, connect, profile, survives):
    hub = start_hub(read_idle=180.0, profile=profile)
    connection = connect(hub)
    connection.sendall(HEARTBEAT)
    assert read_exactly(connection, 5) == HEARTBEAT
    received = hub.stats()["bytes_in"]
    for byte in (HEARTBEAT[:1], HEARTBEAT[1:2]):
        hub._core.advance_clock(100)
        connection.sendall(byte)
        received += 1
        wait_until(lambda sent=received: sent == hub.stats()["bytes_in"] or hub.stats()["closed"]["idle"] == 1)
    if survives:
        connection.sendall(HEARTBEAT[2:])
        assert read_exactly(connection, 5) == HEARTBEAT
    else:
        assert read_all(connection) == b""
    assert hub.stats()["closed"]["idle"] == (0 if survives else 1)


def fill_with_replies(connection: socket.socket, hub) -> int:
    """Ask without reading until the hub stops reading (or closes); return the bytes sent."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.settimeout(1.0)
    attrs = b"k" * 20000
    heartbeat = b"\x08" + bytes(4) + b"\x01" + bytes(4) + len(attrs).to_bytes(2, "big") + attrs + b"\xee\x01"
    heartbeat = len(heartbeat).to_bytes(4, "big") + heartbeat
    sent = 0
    try:
        while True:
            sent += connection.send(heartbeat[sent % len(heartbeat) :])
    except (TimeoutError, ConnectionError):
        return sent
    finally:
        connection.settimeout(30)


def test_a_peer_that_does_not_read_is_not_read_and_then_closed(start_hub, connect):
    hub = start_hub(read_idle=180.0)
    slow, bystander = connect(hub), connect(hub)
    fill_with_replies(slow, hub)
    stopped_at = hub.stats()["bytes_in"]
    assert hub.stats()["connections"] == 2
    bystander.sendall(binary_frame(1, [b"x"]))
    read_frame(bystander)
    assert hub.stats()["bytes_in"] - stopped_at < 1000, "nothing more is read from it"
    hub._core.advance_clock(100)
    bystander.sendall(HEARTBEAT)
    read_exactly(bystander, 5)
    assert hub.stats()["connections"] == 2
    hub._core.advance_clock(90)
    wait_until(lambda: hub.stats()["closed"]["idle"] == 1)
    bystander.sendall(HEARTBEAT)
    assert read_exactly(bystander, 5) == HEARTBEAT


def test_a_peer_that_reads_again_is_read_again(start_hub, connect):
    hub = start_hub()
    slow = connect(hub)
    sent = fill_with_replies(slow, hub)
    assert sent > hub.stats()["bytes_in"] - 1
    slow.setblocking(False)
    received = 0

    def drain() -> bool:
        nonlocal received
        with contextlib.suppress(BlockingIOError):
            received += len(slow.recv(1 << 20))
        stats = hub.stats()
        return stats["bytes_in"] == sent and received == stats["bytes_out"] and stats["replies"] == stats["frames"] > 0

    wait_until(drain)
    assert hub.stats()["closed"]["idle"] == 0


def test_compat_closes_a_peer_that_does_not_read(start_hub, connect):
    hub = start_hub(profile="compat")
    slow = connect(hub)
    fill_with_replies(slow, hub)
    wait_until(lambda: hub.stats()["closed"]["replies"] == 1)


def test_a_full_queue_stops_reading_and_goes_on(start_hub, connect):
    hub = start_hub(queue_bytes=65536, max_frame_bytes=65536, compress_entries=False)
    connections = [connect(hub) for _ in range(4)]
    frame = binary_frame(1, [b"x" * 30000])
    for connection in connections:
        connection.settimeout(30)
        for _ in range(40):
            connection.sendall(frame)
    for connection in connections:
        for _ in range(40):
            assert b"errCode" not in read_frame(connection)
    stats = hub.stats()
    assert stats["entries"] == 160
    assert stats["queued_bytes"] == 0
    assert stats["refused"] == {}


def test_half_received_frames_share_a_budget(start_hub, connect):
    hub = start_hub(queue_bytes=1 << 20)
    holders = [connect(hub) for _ in range(8)]
    closed = 0
    for connection in holders:
        try:
            connection.sendall((400_000).to_bytes(4, "big") + bytes(300_000))
        except ConnectionError:
            closed += 1
    wait_until(lambda: hub.stats()["closed"]["memory"] > 0)
    one = connect(hub)
    one.sendall(HEARTBEAT)
    assert read_exactly(one, 5) == HEARTBEAT


def test_who_completes_his_frames_goes_on_beside_half_sent_ones(start_hub, connect):
    hub = start_hub(queue_bytes=1 << 20)
    honest = connect(hub)
    for number in range(10):
        received = hub.stats()["bytes_in"]
        for _ in range(40):
            connect(hub).sendall((500_000).to_bytes(4, "big") + bytes(30_000))
        wait_until(lambda before=received: hub.stats()["bytes_in"] == before + 40 * 30_004)
        frame = binary_frame(number, [b"x" * 300_000])
        received = hub.stats()["bytes_in"]
        honest.sendall(frame[:200_000])
        wait_until(lambda before=received: hub.stats()["bytes_in"] == before + 200_000)
        honest.sendall(frame[200_000:])
        assert b"errCode" not in read_frame(honest)
    assert hub.stats()["entries"] == 10


def open_silent(port: int, n: int, ready, done) -> None:
    """Open connections that say nothing, or half a length, and hold them."""
    held = []
    for i in range(n):
        one = socket.create_connection(("127.0.0.1", port), timeout=60)
        if i % 2:
            one.sendall(b"\x00\x00")
        held.append(one)
    ready.set()
    done.wait()


HUB_PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (15000, 15000))
from dataproxy.hub import Hub
hub = Hub()
print(hub.port, flush=True)
for line in sys.stdin:
    rss = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
    print(hub.stats()["connections"], rss, flush=True)
hub.close()
"""


@pytest.mark.slow
def test_ten_thousand_silent_connections_cost_almost_nothing(connect):
    root = Path(__file__).parents[3]
    hub = subprocess.Popen(
        [sys.executable, "-c", HUB_PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )

    def ask() -> tuple[int, int]:
        hub.stdin.write("?\n")
        hub.stdin.flush()
        connections, rss = hub.stdout.readline().split()
        return int(connections), int(rss)

    context = multiprocessing.get_context("spawn")
    done = context.Event()
    ready = [context.Event() for _ in range(2)]
    holders = []
    try:
        port = int(hub.stdout.readline())
        _, before = ask()
        holders = [context.Process(target=open_silent, args=(port, 5000, event, done)) for event in ready]
        for holder in holders:
            holder.start()
        for event in ready:
            assert event.wait(60)
        wait_until(lambda: ask()[0] == 10_000)
        _, after = ask()
        assert after - before < 10_000 * 4096 * 2 + (16 << 20)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
            one.sendall(binary_frame(1, [b"x"]))
            assert b"errCode" not in read_frame(one)
    finally:
        done.set()
        for holder in holders:
            holder.join(30)
        hub.stdin.close()
        hub.stdout.close()
        assert hub.wait(30) == 0


def test_a_name_that_the_store_cannot_take_is_refused_with_a_code_of_its_own(start_hub, connect, tmp_path):
    hub = start_hub(str(tmp_path / "store"), max_store_bytes=1 << 20)
    connection = connect(hub)
    for n in range(3000):
        connection.sendall(binary_frame(n, [b"x"], group="g" * 90 + f"{n:04}", stream="s" * 90))
        answer = read_frame(connection)
        if b"errCode" in answer:
            break
    assert b"errCode=113" in answer
    assert hub.stats()["refused"] == {113: 1}
    connection.sendall(binary_frame(0, [b"x"], group="g" * 90 + "0000", stream="s" * 90))
    assert b"errCode" not in read_frame(connection)
