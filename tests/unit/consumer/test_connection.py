"""One connection's calls: serial numbers, limits, answers, and what the peer may send."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator

import pytest

from tests.native.probe_fetch import Line
from tests.native.probe_tubemq import Stream, answer, exception, frame, read_calls

CONNECT, LOST, TIMEOUT, CLOSED = 1, 2, 3, 5
NONE = 0
MOST = 3584 * 8192


def opened(calls: int = 0, *, timeout: int = 5_000_000) -> Line:
    """Return a connection that is connected, with calls 1, 2, ... that are written."""
    line = Line()
    for number in range(1, calls + 1):
        line.call(number, 2, 17, b"request %d" % number, 1000, timeout)
    line.connecting(6_000_000)
    line.connected()
    line.written()
    return line


def reply(serial: int, data: bytes) -> bytes:
    """Return an answer."""
    return bytes(frame(serial, answer(17, data)))


def test_calls_are_numbered_and_written_as_they_were_made() -> None:
    line = Line()
    assert (line.state, line.due) == ("closed", -1)
    line.call(70, 2, 17, b"one", 1000, 5_000_000)
    assert line.state == "wanted"
    line.call(71, 3, 11, bytes(20_000), 1000, 2_000_000)
    line.connecting(6_000_000)
    line.connected()
    found = [(serial, read_calls(payload)) for serial, payload in Stream().push(line.written())]
    assert [serial for serial, _ in found] == [1, 2]
    assert [(one["serviceType"], one["method"], one["timeout"]) for _, one in found] == [(2, 17, 5000), (3, 11, 2000)]
    assert [one["request"] for _, one in found] == [b"one", bytes(20_000)]
    assert (line.state, line.written()) == ("open", b"")


def test_the_earliest_limit_is_not_always_the_oldest_calls() -> None:
    line = Line()
    line.call(1, 2, 17, b"", 1000, 5_000_000)
    line.call(2, 2, 17, b"", 2000, 1_000_000)
    assert line.due == 1_002_000
    line.connecting(900_000)
    assert line.due == 900_000
    line.connected()
    assert line.due == 1_002_000
    line.receive(reply(2, b""))
    assert line.due == 5_001_000
    line.receive(reply(1, b""))
    assert line.due == -1


def test_a_frame_that_arrives_gives_calls_more_time_up_to_a_limit() -> None:
    line = opened(2, timeout=5_000_000)
    whole = reply(1, bytes(20_000))
    assert line.due == 5_001_000
    line.receive(whole[:10_000], 4_000_000)
    assert line.due == 9_000_000
    line.receive(whole[10_000:15_000], 49_000_000)
    assert line.due == 50_001_000  # ten times the limit of a call
    line.receive(whole[15_000:], 49_500_000)
    assert line.due == 50_001_000  # the second call's answer is behind the first one's, on the same way
    line.receive(reply(2, b""), 49_600_000)
    assert line.due == -1


def test_an_answer_gives_the_calls_behind_it_more_time_and_those_before_it_none() -> None:
    line = opened(4, timeout=5_000_000)
    line.receive(reply(2, b""), 4_000_000)
    assert line.due == 5_001_000  # the first call's: its answer would have come by now
    line.receive(reply(1, b""), 4_500_000)
    assert line.due == 9_500_000
    line.receive(reply(3, b""), 9_000_000)
    assert line.due == 14_000_000
    line.call(9, 2, 17, b"", 20_000_000, 5_000_000)  # of the time before it was made it gets nothing
    line.receive(reply(4, b""), 20_000_001)
    assert line.due == 25_000_001


def test_many_small_answers_over_a_slow_network_come_one_after_the_other() -> None:
    """Each one's last byte is the last one that is there: nothing is arriving when the connection is looked at."""
    line = opened(8, timeout=5_000_000)
    for serial in range(1, 9):
        line.receive(reply(serial, bytes(2000)), serial * 4_000_000)
        assert line.due == -1 or line.due > serial * 4_000_000


def test_answers_in_any_order() -> None:
    line = opened(5)
    for serial in (3, 5, 1, 2, 4):
        line.receive(reply(serial, b"data %d" % serial))
    assert line.ends == [(n, n, 0, (0, b"data %d" % n), NONE, 0) for n in (3, 5, 1, 2, 4)]
    line.call(9, 2, 17, b"", 0, 1)  # the list of calls is whole again
    line.receive(reply(6, b"six"))
    assert line.ends[-1][:2] == (9, 6)


def test_answers_that_nobody_waits_for_are_passed_over() -> None:
    line = opened(1)
    assert line.receive(reply(77, b"") + reply(0, b"") + reply(1, b"x") + reply(1, b"y"))
    assert [end[3] for end in line.ends] == [(0, b"x")]


def test_exceptions_are_answers() -> None:
    line = opened(1)
    assert line.receive(frame(1, exception(2, b"java.lang.Error", b"trace")))
    assert line.ends == [(1, 1, 0, (2, b"java.lang.Error"), NONE, 0)]


@pytest.mark.parametrize("seed", range(30))
def test_any_split_gives_the_same(seed: int) -> None:
    dice = random.Random(seed)
    sizes = [dice.choice([0, 1, 100, 8190, 8192, 20_000]) for _ in range(6)]
    data = b"".join(reply(n, bytes([n]) * size) for n, size in enumerate(sizes, 1))
    whole, cut = opened(6), opened(6)
    assert whole.receive(data)
    while data:
        n = min(len(data), dice.choice([1, 3, 13, 4096, 50_000]))
        assert cut.receive(data[:n])
        data = data[n:]
    assert cut.ends == whole.ends
    assert [len(end[3][1]) for end in whole.ends] == sizes
    assert cut.rest_size == 0


def sliced(whole: bytes, sizes: Iterable[int]) -> bytes:
    """Return the frame with its payload cut anew into slices of these sizes, and of the largest for what is left."""
    payload = b"".join(whole[at + 4 : at + 4 + size] for at, size in slices_of(whole))
    pieces = []
    for size in itertools.chain(sizes, itertools.repeat(65536, len(payload) // 65536)):
        if size < len(payload):
            pieces.append(payload[:size])
            payload = payload[size:]
    pieces.append(payload)
    head = whole[:8] + len(pieces).to_bytes(4, "big")
    return head + b"".join(len(piece).to_bytes(4, "big") + piece for piece in pieces)


def slices_of(whole: bytes) -> Iterator[tuple[int, int]]:
    """Give where each slice of a frame begins, and its size."""
    at = 12
    while at < len(whole):
        size = int.from_bytes(whole[at : at + 4], "big")
        yield at, size
        at += 4 + size


@pytest.mark.parametrize("seed", range(30))
def test_slices_of_any_size_give_the_same(seed: int) -> None:
    dice = random.Random(seed)
    bodies = [dice.randbytes(dice.choice([1, 9000, 70_000, 300_000])) for _ in range(4)]
    sizes = dice.choice([(1,), (8192, 1), (65536, 8192), (65536,), (1, 65536)])
    data = b"".join(sliced(reply(n, body), sizes * 40) for n, body in enumerate(bodies, 1))
    line = opened(4)
    while data:
        n = min(len(data), dice.choice([1, 13, 8192, 65_536, 131_072]))
        assert line.receive(data[:n])
        data = data[n:]
    assert [end[3][1] for end in line.ends] == bodies


def test_a_frame_that_is_lost_half_way_leaves_nothing_to_the_next() -> None:
    line = opened(1)
    assert line.receive(reply(1, b"x" * 100_000)[:50_000])
    line.lost(LOST, 0, 1000)
    line.call(2, 2, 17, b"", 2000, 1)
    line.connected()
    assert line.receive(reply(2, b"y" * 30_000))
    assert line.ends[-1][3] == (0, b"y" * 30_000)


@pytest.mark.parametrize(
    "data",
    [b"HTTP/1.1 400 Bad Request", b"\xff\x7f\xf4\xff", reply(1, b"x")[:8] + bytes(4), frame(1, b"\xff\xff\xff")],
    ids=["http", "token", "no slice", "payload"],
)
def test_garbage_ends_the_connection(data: bytes) -> None:
    line = opened(2)
    assert not line.receive(reply(2, b"good") + data)
    assert [end[0] for end in line.ends] == [2]  # what came before counts
    line.lost(4, 0, 1000)
    assert [(end[0], end[4]) for end in line.ends] == [(2, NONE), (1, 4)]


def test_a_payload_over_the_limit_ends_the_connection_at_its_length() -> None:
    line = opened(1)
    piece = (65536).to_bytes(4, "big") + bytes(65536)
    head = reply(1, b"x")[:8] + (3584).to_bytes(4, "big")
    assert line.receive(head[:8] + (3584).to_bytes(4, "big") + piece)
    assert not opened(1).receive(head[:8] + (3585).to_bytes(4, "big"))
    assert not opened(1).receive(head + piece * (MOST // 65536) + (1).to_bytes(4, "big"))


def test_a_lost_connection_ends_all_calls_in_order_and_drops_what_was_not_written() -> None:
    line = opened(2)
    line.call(3, 2, 17, b"not written", 1000, 1)
    line.lost(LOST, 104, 5000)
    assert [(end[0], end[3], end[4], end[5]) for end in line.ends] == [(n, None, LOST, 104) for n in (1, 2, 3)]
    assert (line.state, line.due, line.written()) == ("closed", -1, b"")
    line.call(4, 2, 17, b"", 6000, 1)
    line.connecting(7000)
    line.connected()
    assert [serial for serial, _ in Stream().push(line.written())] == [4]  # numbers go on
    assert line.receive(reply(1, b"old") + reply(4, b"new"))
    assert [end[0] for end in line.ends] == [1, 2, 3, 4]


def test_half_a_frame_of_a_lost_connection_is_forgotten() -> None:
    line = opened(1)
    line.receive(reply(1, b"x" * 100)[:50])
    line.lost(LOST, 0, 1000)
    line.call(2, 2, 17, b"", 2000, 1)
    line.connected()
    assert line.receive(reply(2, b"y"))
    assert line.ends[-1][3] == (0, b"y")


def test_a_connect_that_takes_too_long() -> None:
    line = Line()
    line.call(1, 2, 17, b"", 0, 10_000_000)
    line.connecting(3_000_000)
    assert line.due == 3_000_000
    line.lost(CONNECT, 110, 3_000_000)
    assert [(end[0], end[4], end[5]) for end in line.ends] == [(1, CONNECT, 110)]
    assert (line.again, line.faults) == (3_100_000, 1)


def test_waits_grow_to_five_seconds_and_an_answer_ends_them() -> None:
    line = Line()
    waits = []
    for _ in range(20):
        line.lost(LOST, 0, 0)
        waits.append(line.again // 1000)
    assert waits == [100, 200, 400, 800, 1600, 3200] + [5000] * 14
    line.call(1, 2, 17, b"", 0, 1)
    line.connected()
    line.receive(reply(1, b""))
    assert line.faults == 0
    line.lost(CLOSED, 0, 0)
    assert line.again == 100_000
