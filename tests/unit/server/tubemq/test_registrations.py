"""Registrations at the hub's broker: codes, time limits, and where a group reads, beside a model in plain Python."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from dataproxy._core.server.tubemq.core import RegistrationsCore
from tests.simgroup.servers import Locks
from tests.support.tubeserver.store import INDEX_BYTES, Progress

VECTORS = json.loads((Path(__file__).parents[3] / "data" / "golden" / "tubemq.json").read_text())
S = 1_000_000
ONE = (b"g", b"t", 0)


def made(limit_s: float = 30.0, most_bytes: int = 1 << 20) -> RegistrationsCore:
    """Return an empty table."""
    return RegistrationsCore(b"0123456789abcdef", int(limit_s * S), most_bytes)


def test_the_vectors() -> None:
    """The store's end is 196: four messages, then two, then one."""
    table = made()
    sizes = {0: 112, 112: 56, 168: 28}
    for step in VECTORS["offset_semantics"]:
        what = step["step"]
        if what.startswith("register"):
            assert table.take(*ONE, b"c", b"", 0) == (200, b"c")
            assert table.begin(*ONE, 0, -1, 0, step["max"]) == step["committed"]
        elif what.startswith("get"):
            code, at = table.locate(*ONE, b"c", "true" in what, False, 0, 196, 0)
            assert (code, at) == (200, step["returned_curr_offset"])
            table.book(*ONE, sizes[at], True, False)
        elif what.startswith("commit"):
            assert table.commit(*ONE, b"c", True, 0) == (200, step["committed"])
        else:
            assert table.leave(*ONE, b"c", False, 0) == 200
        ((*_, confirmed, pending),) = table.found()
        assert (confirmed, pending) == (step["committed"], step["pending"]), what


def test_codes_of_who_has_a_partition_and_who_has_not() -> None:
    table = made()
    assert table.use(*ONE, b"a", 0) == 411
    assert table.commit(*ONE, b"a", True, 0) == (401, -1)
    assert table.leave(*ONE, b"a", True, 0) == 411
    assert table.take(*ONE, b"a", b"", 0) == (200, b"a")
    assert table.take(*ONE, b"b", b"", 0) == (410, b"a")
    assert table.use(*ONE, b"b", 0) == 412
    assert table.locate(*ONE, b"b", False, False, 0, 0, 0) == (412, -1)
    assert table.commit(*ONE, b"b", True, 0) == (401, -1)
    assert table.leave(*ONE, b"b", True, 0) == 412
    assert table.take(b"other", b"t", 0, b"b", b"", 0)[0] == 200
    assert table.take(b"g", b"t", 1, b"b", b"", 0)[0] == 200
    assert table.leave(*ONE, b"a", True, 0) == 200
    assert table.leave(*ONE, b"a", True, 0) == 411


def test_an_end_that_was_looked_at_before_moves_no_position_back() -> None:
    table = made()
    table.take(*ONE, b"a", b"", 0)
    assert table.begin(*ONE, 0, 280, 0, 280) == 280
    assert table.locate(*ONE, b"a", False, False, 0, 252, 0) == (200, 252)
    assert table.found()[0][4:] == (280, 0)
    assert table.locate(*ONE, b"a", False, False, 308, 336, 0) == (200, 308), "what is gone is left behind"


def test_a_position_beyond_the_store_is_its_end_for_who_registers() -> None:
    table = made()
    table.restore(*ONE, 280)
    table.take(*ONE, b"a", b"", 0)
    assert table.begin(*ONE, 0, -1, 0, 140) == 140


def test_an_owner_that_is_silent_loses_its_partition() -> None:
    table = made(30.0)
    table.take(*ONE, b"a", b"", 0)
    table.begin(*ONE, 0, -1, 0, 280)
    table.locate(*ONE, b"a", False, False, 0, 280, 0)
    table.book(*ONE, 56, True, False)
    assert table.use(*ONE, b"a", 20 * S) == 200
    assert table.expire(50 * S) == 0
    assert table.take(*ONE, b"b", b"", 50 * S + 1) == (410, b""), "the call that removes it fails all the same"
    assert table.take(*ONE, b"b", b"", 50 * S + 1) == (200, b"b")
    assert table.use(*ONE, b"a", 50 * S + 1) == 412
    assert table.found()[0][4:] == (0, 0), "what was not confirmed is read again"
    assert table.expire(81 * S) == 1
    assert table.use(*ONE, b"b", 81 * S) == 411


@pytest.mark.parametrize(
    ("stored", "status", "wanted", "begins"),
    [
        (None, 0, -1, 28), (None, 1, -1, 280), (None, 2, -1, 280), (56, 0, -1, 56), (56, 1, -1, 56), (56, 2, -1, 280),
        (None, 0, 84, 84), (56, 0, 84, 84), (56, 1, 0, 28), (56, 0, 1000, 280), (56, 2, 84, 280),
    ],
)  # fmt: skip
def test_where_a_registration_begins(stored: int | None, status: int, wanted: int, begins: int) -> None:
    table = made()
    if stored is not None:
        assert table.restore(*ONE, stored)
    table.take(*ONE, b"a", b"", 0)
    assert table.begin(*ONE, status, wanted, 28, 280) == begins


def test_a_position_outside_of_the_store_is_moved_into_it() -> None:
    table = made()
    table.restore(*ONE, 28)
    table.take(*ONE, b"a", b"", 0)
    assert table.begin(*ONE, 0, -1, 0, 280) == 28
    assert table.locate(*ONE, b"a", False, False, 56, 280, 0) == (200, 56)
    assert table.locate(*ONE, b"a", False, False, 0, 28, 0) == (200, 28)


def test_what_has_no_message_confirms_itself_and_reading_on_does_not() -> None:
    table = made()
    table.take(*ONE, b"a", b"", 0)
    table.begin(*ONE, 0, -1, 0, 280)
    table.book(*ONE, 84, False, False)
    assert table.found()[0][4:] == (84, 0)
    for at in (84, 112, 140):
        assert table.locate(*ONE, b"a", False, True, 0, 280, 0) == (200, at)
        table.book(*ONE, 28, True, True)
    assert table.commit(*ONE, b"a", True, 0) == (200, 168)


def test_groups_beyond_the_room_are_refused_and_those_there_go_on() -> None:
    table = made(most_bytes=1 << 16)
    codes = [table.take(b"g%d" % i, b"t", 0, b"c", b"", 0)[0] for i in range(10_000)]
    assert set(codes) == {200, 500}
    assert table.bytes <= 1 << 16
    assert table.use(b"g0", b"t", 0, b"c", 0) == 200
    assert table.take(b"g0", b"t", 0, b"c" * 70_000, b"", 0)[0] == 410
    assert table.leave(b"g0", b"t", 0, b"c", True, 0) == 200
    assert table.take(b"g0", b"t", 0, b"c" * 70_000, b"", 0) == (500, b"")
    assert not table.restore(b"new", b"t", 0, 0)


def test_many_groups_are_found_again() -> None:
    table = made(most_bytes=64 << 20)
    names = [(b"g%d" % (i % 500), b"t%d" % (i % 7), i) for i in range(20_000)]
    for i, name in enumerate(names):
        assert table.restore(*name, i * INDEX_BYTES)
    assert {row[:3]: row[4] for row in table.found()} == {name: i * INDEX_BYTES for i, name in enumerate(names)}


def located(progress: Progress, consumed: bool, manual: bool, least: int, end: int) -> int:
    """Return where the model begins to read."""
    if not manual:
        progress.commit(consumed)
    at = progress.confirmed + progress.pending
    if not least <= at <= end:
        at = least if at < least else end
        progress.confirmed, progress.pending = at, 0
    return at


@pytest.mark.parametrize("seed", range(100))
def test_any_calls_beside_the_model(seed: int) -> None:
    source = random.Random(seed)
    table, locks = made(10.0), Locks(10.0)
    progress: dict[tuple[Any, ...], Progress] = {}
    keys = [(b"g", b"t", 0), (b"g", b"t", 1), (b"h", b"t", 0)]
    now, least, end = 0.0, 0, 280
    for _ in range(400):
        now += source.choice((0.0, 0.5, 3.0, 11.0))
        end += INDEX_BYTES * source.randrange(3)
        least = min(least + INDEX_BYTES * source.choice((0, 0, 0, 1)), end)
        key, client = source.choice(keys), source.choice((b"a", b"b"))
        now_us, name = int(now * S), client.decode()
        what = source.randrange(5)
        owner = locks.owner(key, now)
        if key in progress and locks.owner(key, now) is None:
            progress[key].commit(False)  # the time of its owner is over
        if what == 0:
            taken = locks.take(key, name, now)
            assert table.take(*key, client, b"", now_us)[0] == (200 if taken else 410)
            if taken:
                status = source.randrange(3)
                found = progress.setdefault(key, Progress(least if status == 0 else end))
                found.commit(False)
                if status == 2:
                    found.confirmed = end
                assert table.begin(*key, status, -1, least, end) == found.confirmed
        elif what == 1:
            consumed = source.random() < 0.5
            code = locks.leave(key, name, now)
            assert table.leave(*key, client, consumed, now_us) == code
            if code == 200:
                progress[key].commit(consumed)
        elif what == 2:
            consumed, manual = source.random() < 0.5, source.random() < 0.2
            code = locks.use(key, name, now)
            found_code, at = table.locate(*key, client, consumed, manual, least, end, now_us)
            assert found_code == code
            if code == 200:
                mine = progress[key]
                assert at == located(mine, consumed, manual, least, end)
                scanned = INDEX_BYTES * source.randrange((end - at) // INDEX_BYTES + 1)
                matched = source.random() < 0.8
                table.book(*key, scanned, matched, manual)
                if scanned:
                    mine.pending = mine.pending + scanned if manual else scanned
                    if not matched and not manual:
                        mine.commit(True)
        elif what == 3:
            consumed = source.random() < 0.7
            code, at = table.commit(*key, client, consumed, now_us)
            if owner == name:
                locks.use(key, name, now)
                assert (code, at) == (200, progress[key].commit(consumed))
            else:
                assert (code, at) == (401, -1)
        else:
            assert table.use(*key, client, now_us) == locks.use(key, name, now)


def test_who_looks_at_all_sees_each_once_while_there_come_more() -> None:
    """Looking lets others in between some buckets and the next ones, and begins anew when the table grows."""
    table = made(most_bytes=64 << 20)
    known = [(b"g%d" % i, b"t", 0) for i in range(9000)]
    for key in known:
        table.take(*key, b"c", b"", 0)
    over = threading.Event()

    def add() -> None:
        for i in range(60_000):
            table.take(b"h%d" % i, b"t", 0, b"c", b"", 100 * S)
        over.set()

    adding = threading.Thread(target=add)
    adding.start()
    looks = 0
    while not over.is_set() or not looks:
        rows = [row[:3] for row in table.found()]
        assert len(set(rows)) == len(rows)
        assert set(known) <= set(rows)
        assert len(table.found(b"g7")) == 1
        looks += 1
    adding.join()
    assert len(table.found()) == 69_000
    assert table.expire(50 * S) == 9000, "each once"
    assert not any(row[3] for row in table.found() if row[0].startswith(b"g"))
