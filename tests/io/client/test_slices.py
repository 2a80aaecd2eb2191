"""What the threads of a producer ask of the scheduler."""

import ctypes
import platform
import struct
import threading

from dataproxy import Producer
from tests.io.scripted import Scripted

SCHED_GETATTR = 315 if platform.machine() == "x86_64" else 275
SHORT_NS = 100_000
LAYOUT = struct.Struct("IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period


def attributes(thread_id: int) -> tuple[int, ...]:
    """Return what the kernel says of a thread, zeros where it has no such call."""
    raw = ctypes.create_string_buffer(LAYOUT.size)
    ctypes.CDLL(None).syscall(SCHED_GETATTR, thread_id, raw, LAYOUT.size, 0)
    return LAYOUT.unpack(raw.raw)


def test_executors_run_in_short_slices_and_nothing_else_is_changed() -> None:
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
    usual = others[0]
    known = usual[5] != 0  # the slice, from Linux 6.12 on
    assert set(others) == {usual}
    assert len(executors) == 2
    for one in executors:
        assert (one[1], one[3]) == (usual[1], usual[3])  # policy and nice value
        assert one[5] in ((SHORT_NS,) if known else (0, SHORT_NS))
