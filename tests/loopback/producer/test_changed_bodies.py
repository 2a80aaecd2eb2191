"""Bodies in memory that changes after they were checked: with lines, what is written is what counts."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest

import dataproxy
from tests.native.probe_items import append, append_rows
from tests.support.scripted import Peer, Scripted, ack


@pytest.fixture
def idle():
    """Yield a producer of lines whose proxy is gone."""
    with Scripted() as server:
        target = server.target
    p = dataproxy.Producer(target, group_id="g", message_type=3, linger=60, undelivered_bytes="1MiB")
    yield p
    p.close(0)


def test_no_line_feed_comes_in_behind_the_check(idle) -> None:
    handle = idle.stream("s")
    assert append(handle, b"first\nsecond") == "invalid argument"
    assert (idle.stats().accepted, idle.stats().open) == (0, 0)
    assert append(handle, b"line") == "ok"
    assert append(handle, b"other\n") == "invalid argument"
    assert (idle.stats().accepted, idle.stats().buffered_bytes) == (1, 5)


def test_rows_before_the_changed_one_are_in(idle) -> None:
    handle = idle.stream("s")
    assert append_rows(handle, [b"\n"]) == ("invalid argument", 0)
    assert idle.stats().open == 0
    assert append_rows(handle, [b"a", b"b", b"c\nd", b"e"]) == ("invalid argument", 2)
    assert idle.stats().accepted == 2
    idle.close(0)
    assert sorted(m.body for m in idle.undelivered()) == [b"a", b"b"]


@pytest.mark.parametrize("call", ["send", "send_nowait", "send_batch"])
def test_a_body_that_changes_while_its_call_waits_for_room(call: str) -> None:
    """A signal handler changes it, which runs nowhere in the call but inside of the wait."""
    free = threading.Event()
    held: list[tuple[Peer, bytes]] = []

    def react(peer: Peer, frame: bytes) -> None:
        if free.is_set():
            peer.send(ack(frame))
        else:
            held.append((peer, frame))

    body = bytearray(b"one line")
    ticks: list[int] = []

    def change(_number: int, _frame: FrameType | None) -> None:
        ticks.append(1)
        if len(ticks) == 3 and held:  # the first may come before the call
            body[3:4] = b"\n"
            free.set()
            for peer, frame in held:
                peer.send(ack(frame))
        elif len(ticks) >= 3:
            ticks.pop()

    with Scripted(react) as server, dataproxy.Producer(
        server.target, group_id="g", message_type=3, buffer_bytes=1024, max_block=30, linger=0.001, undelivered_bytes=0
    ) as p:  # fmt: skip
        p.send("s", b"x" * 1020)
        server.wait(lambda: held)
        before = signal.signal(signal.SIGALRM, change)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            if call == "send_batch":
                assert p.send_batch("s", [memoryview(body)]).result(20).ok  # copied before it is checked
            else:
                with pytest.raises(dataproxy.InvalidMessageError, match="line feed"):
                    getattr(p, call)("s", body)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        p.flush(20)
        assert p.stats().accepted == (2 if call == "send_batch" else 1)
        assert p.report().balanced
        if call == "send_batch":
            assert server.bodies()[-1] == b"one line"
