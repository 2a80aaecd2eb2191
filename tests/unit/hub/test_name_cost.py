"""What names cost a hub: long ones, new ones and many of them, in processor time of this thread."""

from __future__ import annotations

import time

from tests.campaigns.hostile import binary
from tests.sim.byhand import ByHand

#: 2 to 5 are usual; what this guards against, names that were chosen to share a place, was at 300 and more.
TIMES_ONE_SHORT_NAME = 60


def sized(data: bytes) -> bytes:
    """Return bytes behind their length."""
    return len(data).to_bytes(4, "big") + data


def name_cost(names: list[tuple[bytes, bytes]]) -> float:
    """Return the seconds that a frame costs a server and a store, from its bytes to its ack."""
    data = b"".join(binary(sized(b"x"), b"groupId=" + group + b"&streamId=" + stream) for group, stream in names)

    def run() -> float:
        with ByHand(queue_bytes=64 << 20) as server:
            server.connect().say(data)
            begin = time.thread_time()
            server.rounds()
            spent = time.thread_time() - begin
            assert server.stats()["entries"] == len(names)
        return spent / len(names)

    return min(run() for _ in range(3))


def test_no_name_costs_much_more_than_another():
    """Names are looked up by a keyed hash, so that nobody can choose some that share a place."""
    one = name_cost([(b"g", b"s")] * 2000)
    many = [(b"%05d" % n).rjust(255, b"n") for n in range(2000)]
    assert name_cost([(b"n" * 255, b"n" * 255)] * 2000) < TIMES_ONE_SHORT_NAME * one
    assert name_cost([(name, name) for name in many]) < TIMES_ONE_SHORT_NAME * one
    assert name_cost([(name, name) for name in many[:500] * 4]) < TIMES_ONE_SHORT_NAME * one
