"""Packs of packed bodies: they are unpacked without the lock, portion by portion, and within bounds."""

from __future__ import annotations

import random
import select
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy.consumer.pushed import packs as account
from dataproxy.consumer.pushed import unpacking
from dataproxy.consumer.pushed.reader import PackReader
from dataproxy.consumer.pushed.unpacking import PACK_MOST, PORTION
from dataproxy.errors import RemoteProtocolError
from tests.support.waiting import SECONDS
from tests.unit.consumer.test_pushed_packs import Bench

ZLIB, LZ4 = 1, 1 | 1 << 8
MIB = 1 << 20
TURNS = 100_000


def push(bench: Bench, reader: PackReader, *bodies: bytes | tuple[bytes, int]) -> None:
    """Let a frame come, with bodies that are packed; a pair is the bytes as they are, and their marks."""
    bench.push_stored(reader, [one if isinstance(one, tuple) else (zlib.compress(one), ZLIB) for one in bodies])


def drain(bench: Bench, n: int, then: Callable[[], object] = lambda: None) -> list[Any]:
    """Confirm packs until so many messages have come; return the packs."""
    found: list[Any] = []
    for _ in range(TURNS):
        pack = bench.packs.take(bench.owner, 0)
        then()
        if pack is not None:
            found.append(pack)
            assert bench.confirm(pack) == pack.offset + len(pack)
            if sum(map(len, found)) == n:
                return found
    raise AssertionError(f"{found} came")


def test_a_poll_without_time_unpacks_a_portion_and_another_queue_has_its_turn() -> None:
    bench = Bench()
    large, small = bench.queue(1), bench.queue(2)
    push(bench, large, bytes(8 * PORTION))
    push(bench, small, b"small")
    assert bench.packs.take(bench.owner, 0) is None
    assert bench.take().bodies() == [b"small"]
    turns = [bench.packs.take(bench.owner, 0) for _ in range(9)]
    [pack] = filter(None, turns)
    assert pack.bodies() == [bytes(8 * PORTION)] and turns.index(pack) >= 6
    assert bench.counts() == (2, 0, 0, 0, 2)


def test_a_poll_with_time_unpacks_everything() -> None:
    bench = Bench()
    reader = bench.queue()
    push(bench, reader, b"first", bytes(8 * PORTION), (b"plain", 0))
    pack = bench.packs.take(bench.owner, SECONDS)
    assert pack is not None and pack.bodies() == [b"first", bytes(8 * PORTION), b"plain"]


def test_bodies_are_unpacked_while_others_can_do_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    one, two = bench.queue(1), bench.queue(2)
    inside, go_on = threading.Event(), threading.Event()
    real, taken = unpacking.unpack_more, []

    def unpack(*given: Any) -> bytes:
        inside.set()
        assert go_on.wait(SECONDS)
        return real(*given)

    monkeypatch.setattr(unpacking, "unpack_more", unpack)
    push(bench, one, b"packed")
    thread = threading.Thread(target=lambda: taken.append(bench.packs.take(bench.owner, SECONDS)))
    thread.start()
    assert inside.wait(SECONDS)
    assert bench.packs.take(bench.owner, 0) is None, "nobody waits for another thread's portion"
    bench.push(two, 1)
    pack = bench.take()
    assert pack.partition == "b:T:2" and bench.confirm(pack) == 1
    assert bench.packs.tally()["packs"]["held"] == 1
    go_on.set()
    thread.join(SECONDS)
    assert [one.bodies() for one in taken] == [[b"packed"]]


def test_a_frame_is_divided_where_its_bodies_are_many_bytes() -> None:
    bench = Bench()
    reader = bench.queue()
    push(bench, reader, *[bytes([n]) * MIB for n in range(40)])
    push(bench, reader, b"last")
    found = drain(bench, 41)
    assert [len(pack) for pack in found] == [16, 16, 8, 1]
    assert [pack.offset for pack in found] == [0, 16, 32, 40]
    assert [body[:1] for pack in found[:3] for body in pack.bodies()] == [bytes([n]) for n in range(40)]
    assert all(pack.nbytes < PACK_MOST + 2 * MIB for pack in found)
    assert bench.counts() == (4, 4, 0, 0, 0) and reader.backlog.done == 41 and reader.backlog.idle


def test_parts_of_a_frame_come_again_in_their_order() -> None:
    bench = Bench()
    reader = bench.queue()
    push(bench, reader, *[bytes([n]) * MIB for n in range(20)])
    first = bench.packs.take(bench.owner, SECONDS)
    assert first is not None
    bench.packs.roll_back(first)
    again, rest = drain(bench, 20)
    assert (again.offset, len(again), rest.offset, len(rest)) == (0, 16, 16, 4)
    assert again.bodies() == first.bodies() and bench.counts() == (3, 2, 1, 0, 0)


def test_what_is_unpacked_and_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_UNPACKED_MOST", 4 * MIB)
    monkeypatch.setattr(unpacking, "PACK_MOST", 2 * MIB)
    bench = Bench()
    readers = [bench.queue(n) for n in range(12)]
    for reader in readers:
        push(bench, reader, *[bytes(3 * MIB)] * 3)
    most = 0

    def look() -> None:
        nonlocal most
        most = max(most, sum(one.unpacking.bytes for one in readers if one.unpacking is not None))

    assert sum(len(pack) for pack in drain(bench, 36, look)) == 36 and 0 < most <= 4 * MIB + 3 * MIB


def test_bodies_that_unpack_to_too_much_cost_a_portion_each_time() -> None:
    bench = Bench()
    reader = bench.queue()
    bomb = zlib.compress(bytes(65 * MIB), 9)
    push(bench, reader, (bomb, ZLIB), (b"no zlib", ZLIB), (bomb[:-9], ZLIB), (b"x", LZ4), b"good")
    turns = 0

    def count() -> None:
        nonlocal turns
        turns += 1

    [pack] = drain(bench, 5, count)
    assert turns > 100 and pack[4].body == b"good" and pack.nbytes < MIB
    for at, text in enumerate(("is larger than 67108864 bytes", "is no zlib", "is larger than", "with LZ4")):
        with pytest.raises(RemoteProtocolError, match=text):
            _ = pack[at].body


def test_a_body_that_is_cut_off_has_no_end() -> None:
    bench = Bench()
    reader = bench.queue()
    push(bench, reader, (zlib.compress(random.Random(1).randbytes(3 * MIB))[:-9], ZLIB))
    with pytest.raises(RemoteProtocolError, match="has no end"):
        drain(bench, 1)[0].bodies()


def test_a_portion_that_is_interrupted_is_unpacked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    reader = bench.queue()
    body = random.Random(2).randbytes(3 * MIB)
    push(bench, reader, b"a", body)
    real, calls = unpacking.unpack_more, []

    def unpack(*given: Any) -> bytes:
        found = real(*given)
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt  # its bytes are lost
        return found

    monkeypatch.setattr(unpacking, "unpack_more", unpack)
    with pytest.raises(KeyboardInterrupt):
        bench.packs.take(bench.owner, SECONDS)
    pack = bench.packs.take(bench.owner, SECONDS)
    assert pack is not None and pack.bodies() == [b"a", body] and bench.counts() == (1, 0, 0, 0, 1)


def test_an_event_loop_is_told_that_there_is_more_to_unpack() -> None:
    bench = Bench(awaited=True)
    look = select.poll()
    look.register(bench.packs.fileno(), select.POLLIN)
    push(bench, bench.queue(), bytes(3 * PORTION))
    for _ in range(2):
        bench.packs.look()
        assert bench.packs.take(bench.owner, 0) is None and look.poll(0)


def test_what_is_given_back_while_it_is_unpacked_leaves_nothing() -> None:
    bench = Bench()
    reader = bench.queue()
    push(bench, reader, bytes(8 * PORTION))
    assert bench.packs.take(bench.owner, 0) is None
    bench.packs.close_queue(reader)
    assert bench.packs.take(bench.owner, 0) is None and reader.unpacking is None
    assert bench.counts() == (1, 0, 1, 0, 0)
