"""What the threads of a producer ask of the scheduler."""

import ctypes
import platform
import struct
import threading

import pytest

from dataproxy import Producer
from tests.support.scripted import Scripted

SCHED_GETATTR = 315 if platform.machine() == "x86_64" else 275
SHORT_NS = 100_000
LAYOUT = struct.Struct("IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period


def attributes(thread_id: int) -> tuple[int, ...]:
    """Return what the kernel says of a thread."""
    raw = ctypes.create_string_buffer(LAYOUT.size)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SCHED_GETATTR, thread_id, raw, LAYOUT.size, 0) != 0:
        raise OSError(ctypes.get_errno(), "sched_getattr")
    return LAYOUT.unpack(raw.raw)


def threads_of_a_producer() -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the attributes of two executors, and those of a producer's other threads and of the main thread."""
    before = set(threading.enumerate())  # a test that failed may have left a producer
    with Scripted() as server, Producer(server.target, group_id="g", linger=0, executors=2) as producer:
        for _ in range(2):  # packs go to the executors in turn, so both have run
            producer.send("s", b"x").result(30)
        executors, others = [], []
        for thread in threading.enumerate():
            if thread in before and thread is not threading.main_thread():
                continue
            kind = executors if thread.name.startswith("dataproxy-exec") else others
            kind.append(attributes(thread.native_id or 0))
    assert len(executors) == 2
    return executors, others


def test_nothing_but_the_slices_is_changed() -> None:
    executors, others = threads_of_a_producer()
    usual = others[0]
    assert set(others) == {usual}
    assert {(one[1], one[3]) for one in executors} == {(usual[1], usual[3])}  # policy and nice value


@pytest.mark.skipif(attributes(threading.get_native_id())[5] == 0, reason="this kernel has no slices of its own")
def test_executors_run_in_short_slices() -> None:
    executors, others = threads_of_a_producer()
    assert [one[5] for one in executors] == [SHORT_NS, SHORT_NS]
    assert SHORT_NS not in {one[5] for one in others}
