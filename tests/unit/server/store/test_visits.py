"""Visits of a store: what is seen, where they stop, and what counts as looked at."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries
from tests.native.probe_visits import visit

Make = Callable[..., StoreCore]


def filled(make: Make, streams: list[str], size: int = 10) -> StoreCore:
    store = make()
    append_entries(store, [("g", stream, bytes(size)) for stream in streams])
    return store


def test_all_streams(make: Make) -> None:
    names = ["a", "b", "", "a", "c"]
    store = filled(make, names)
    rows = list(enumerate(names))
    assert visit(store, "g", 0, 0) == (0, 5, 5, rows)
    assert visit(store, "g", 0, 3) == (0, 5, 5, rows[3:])
    assert visit(store, "g", 0, 5) == (0, 5, 5, [])
    assert visit(store, "g", 0, 9) == (0, 5, 5, [])
    assert visit(store, "g", 1, 0) == (0, 0, 0, [])
    assert visit(store, "other", 0, 0) == (0, 0, 0, [])


def test_limits(make: Make) -> None:
    store = filled(make, ["a"] * 10, 100)
    assert visit(store, "g", 0, 2, entries=3)[2:] == (5, [(i, "a") for i in (2, 3, 4)])
    one = visit(store, "g", 0, 0, most=1)
    assert one[2:] == (1, [(0, "a")])  # the first is always there
    assert len(visit(store, "g", 0, 0, enough=1)[3]) == 1
    assert 1 < len(visit(store, "g", 0, 0, most=600)[3]) < 6
    assert len(visit(store, "g", 0, 0, enough=400)[3]) >= 3


def test_what_is_around_an_entry_does_not_count_for_limits_of_bytes(make: Make) -> None:
    store = filled(make, ["a"] * 40, 100)
    counts = [len(visit(store, "g", 0, 0, most=2000, around=around)[3]) for around in (0, 64, 10_000)]
    assert 0 < counts[0] < counts[1] < counts[2] == 40
    assert len(visit(store, "g", 0, 0, enough=2000, around=10_000)[3]) == 40
    assert len(visit(store, "g", 0, 0, entries=3, around=10_000)[3]) == 3


def test_several_streams_are_merged_and_the_rest_counts_as_looked_at(make: Make) -> None:
    rng = random.Random(5)
    names = [f"s{rng.randrange(12)}" for _ in range(2000)]
    store = filled(make, names)
    for wanted in (["s1"], ["s3", "s0"], [f"s{i}" for i in range(12)], ["s5", "never", "s7", "s11"], ["never"]):
        rows = [(i, name) for i, name in enumerate(names) if name in wanted]
        for start in (0, 7, 1000, 1999, 2000):
            rest = [row for row in rows if row[0] >= start]
            assert visit(store, "g", 0, start, streams=wanted) == (0, 2000, 2000, rest)
            if len(rest) > 20:
                assert visit(store, "g", 0, start, streams=wanted, entries=20)[2:] == (rest[20][0], rest[:20])


@pytest.mark.parametrize("wanted", [["a", "b"], ["b", "a"]])
@pytest.mark.parametrize("names", ["abaaa", "babbb", "abcaca", "bcabab"])
def test_a_stream_that_has_no_more_entries_takes_none_of_the_others(make: Make, names: str, wanted: list[str]) -> None:
    store = filled(make, list(names))
    for start in range(len(names) + 1):
        rest = [(i, name) for i, name in enumerate(names) if i >= start and name in wanted]
        assert visit(store, "g", 0, start, streams=wanted)[2:] == (len(names), rest)


def test_names_of_many_streams(make: Make) -> None:
    names = [f"stream {i}" for i in range(3000)]
    store = filled(make, names)
    assert visit(store, "g", 0, 2500)[3] == list(enumerate(names))[2500:]


def test_a_damaged_entry_ends_a_visit_and_is_named_by_the_next(tmp_path: Path) -> None:
    with_store = StoreCore(str(tmp_path))
    append_entries(with_store, [("g", "s", b"entry %d " % i + b"." * 3000) for i in range(6)])
    with_store.close()
    data = (tmp_path / "data.mdb").read_bytes()
    at = data.index(b"entry 3 ")
    (tmp_path / "data.mdb").write_bytes(data[:at] + b"X" + data[at + 1 :])
    again = StoreCore(str(tmp_path))
    try:
        for streams in ((), ("s",)):
            assert visit(again, "g", 0, 0, streams=streams) == (0, 6, 3, [(i, "s") for i in range(3)])
            with pytest.raises(ValueError, match="3"):
                visit(again, "g", 0, 3, streams=streams)
            assert visit(again, "g", 0, 4, streams=streams)[3] == [(4, "s"), (5, "s")]
    finally:
        again.close()
