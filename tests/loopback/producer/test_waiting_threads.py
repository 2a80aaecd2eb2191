"""A thread that waits for a result sleeps until that result is there: those of other threads do not wake it."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dataproxy
from tests.support.scripted import Peer, Scripted, ack

OTHERS = 300  # results of other messages
SPARE = 60  # times that the thread may wake: for signals ten times a second, and at its beginning


def sleeps(thread: int) -> int:
    """Return how often a thread of this process has gone to sleep."""
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_results_of_others_do_not_wake_a_waiting_thread() -> None:
    held: list[tuple[Peer, bytes]] = []
    native: list[int] = []
    waits = threading.Event()

    def react(peer: Peer, frame: bytes) -> None:
        if held:
            peer.send(ack(frame))
        else:
            held.append((peer, frame))

    def wait(delivery: dataproxy.Delivery) -> dataproxy.Delivered | dataproxy.Sent:
        native.append(threading.get_native_id())
        waits.set()
        return delivery.result(60)

    with (
        Scripted(react) as server,
        dataproxy.Producer(server.target, group_id="g") as producer,
        ThreadPoolExecutor(1) as pool,
    ):
        last = pool.submit(wait, producer.send("s", b"held"))
        assert waits.wait(20)
        server.wait_frames(1)  # so it has asked for its message to be sent, and sleeps or is about to
        before = sleeps(native[0])
        for _ in range(OTHERS):
            producer.send("s", b"other").result(20)
        assert sleeps(native[0]) - before < SPARE
        peer, frame = held[0]
        peer.send(ack(frame))
        last.result(20)
