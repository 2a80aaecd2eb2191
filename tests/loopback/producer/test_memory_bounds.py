"""What a producer takes of the heap: bounded by what is allocated, whatever shape its packs have."""

import ctypes
from contextlib import suppress

import pytest

import dataproxy
from tests.support.scripted import Scripted, good, silent

MIB = 1 << 20
SPREAD = 2 * MIB  # of the heap: other objects of the process, and what the C library rounds up


class _Heap(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


_mallinfo = ctypes.CDLL(None).mallinfo2
_mallinfo.restype = _Heap


def heap() -> int:
    """Return the bytes that the C library has given out: of all arenas, and by mmap."""
    info = _mallinfo()
    return int(info.uordblks + info.hblkhd)


def bound(buffer_bytes: int) -> int:
    """Return what packs may take at most."""
    return buffer_bytes + buffer_bytes // 8 + 4 * MIB


def some_answered(peer, frame: bytes) -> None:
    """Answer all but the tiny stream, and keep nothing of what came."""
    peer.owner.frames.clear()
    if b"tiny" not in frame:
        good(peer, frame)


@pytest.mark.parametrize("mode", ["raise", "drop_newest", "drop_oldest"])
def test_many_tiny_packs(mode) -> None:
    size = 4 * MIB
    with Scripted(silent) as server:
        before = heap()
        p = dataproxy.Producer(server.target, group_id="g", buffer_bytes=size, batch_messages=1, on_full=mode)
        with suppress(dataproxy.BufferFullError):
            for _ in range(60_000):
                p.send_nowait("s", b"x")
        stats = p.stats()
        taken = heap() - before
        assert stats.balanced
        assert stats.accepted > 1000
        assert stats.buffered_bytes < MIB
        # What drop_oldest gave up is put away by the network thread, which is bounded apart.
        assert taken <= bound(size) + SPREAD + (size + 4 * MIB if mode == "drop_oldest" else 0)
        assert p.close(0).balanced


def test_tiny_packs_in_buffers_that_large_ones_left_behind() -> None:
    """Large packs come and go, tiny ones stay: each takes a buffer of its own size."""
    size = 8 * MIB
    with Scripted(some_answered) as server:
        before = heap()
        p = dataproxy.Producer(server.target, group_id="g", buffer_bytes=size, batch_messages=1)
        tiny = 0
        for _ in range(12):
            for _ in range(100):
                p.send_nowait("large", b"x" * 60_000)
            for _ in range(100):
                p.send_nowait("tiny", b"x")
                tiny += 1
            while p.stats().pending > tiny:
                p._wait_settled(0.01)
            assert heap() - before <= bound(size) + SPREAD
        stats = p.stats()
        assert (stats.pending, stats.buffered_bytes) == (tiny, 5 * tiny)
        assert stats.memory_bytes < tiny * 4096
        assert p.close(0).failed == tiny
        assert p.stats().memory_bytes == 0


def test_many_open_packs_of_streams_that_sent_large_ones() -> None:
    """Each stream's next buffer begins as large as its last one was; all of them together are bounded."""
    size = 4 * MIB
    with Scripted(some_answered) as server:
        p = dataproxy.Producer(server.target, group_id="g", buffer_bytes=size, linger=60, on_full="raise")
        before = heap()
        for round_ in range(2):
            for i in range(400):
                body = b"x" * (50_000 if round_ == 0 else 5)
                p.send_nowait(f"s{i}", body)
                if round_ == 0 and i % 50 == 49:
                    p.flush(30)
        stats = p.stats()
        assert stats.open == 400
        assert heap() - before <= bound(size) + SPREAD
        assert stats.memory_bytes <= bound(size)
        assert p.close(30).ok


def test_a_sender_waits_for_memory_and_goes_on() -> None:
    """With ``block`` the senders wait for what the results of others free."""
    size = 64 * 1024
    with Scripted(good) as server:
        p = dataproxy.Producer(server.target, group_id="g", buffer_bytes=size, batch_messages=1, max_block=30)
        most = 0
        for i in range(20_000):
            p.send_nowait("s", b"x")
            if i % 100 == 0:
                most = max(most, p.stats().memory_bytes)
        assert most <= bound(size)
        assert p.close(30).delivered == 20_000
        assert p.stats().memory_bytes == 0
