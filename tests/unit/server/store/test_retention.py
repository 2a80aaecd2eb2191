"""What is dropped, what is never given out twice, and what the bounds of each store do."""

import pytest

from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once


def drain(store, now_ms):
    """Apply the retention limits until nothing more is dropped."""
    dropped = 0
    while step := retain_once(store, now_ms):
        dropped += step
    return dropped


@pytest.fixture(params=["durable", "memory"])
def path(request, tmp_path):
    return str(tmp_path / "store") if request.param == "durable" else None


def test_age_drops_the_oldest_of_each_log(path):
    store = StoreCore(path, retention_ms=100)
    for now_ms in range(0, 500, 50):
        append_entries(store, [("a", "s", b"x"), ("b", "t", b"y")], receive_ms=now_ms)
    assert drain(store, 500) == 16
    assert [log[:6] for log in sorted(store.logs())] == [("a", 0, 8, 10, 2, 2), ("b", 0, 8, 10, 2, 2)]
    assert store.stats()["dropped_entries"] == 16
    assert store.stream_offsets("a", 0, "s", 0, 100) == [8, 9]
    store.close()


def test_size_counts_for_each_log(path):
    store = StoreCore(path, retention_bytes=10_000)
    append_entries(store, [("big", "s", b"x" * 1000)] * 50 + [("small", "s", b"y")] * 50)
    assert drain(store, 0) > 0
    logs = {log[0]: log for log in store.logs()}
    assert logs["small"][4] == 50
    assert 5 <= logs["big"][4] < 10 and logs["big"][6] <= 10_000
    store.close()


def test_a_step_is_bounded(path):
    store = StoreCore(path, retention_ms=1)
    append_entries(store, [("g", "s", b"x")] * 3000, receive_ms=0)
    assert retain_once(store, 1000) == 1024
    assert drain(store, 1000) == 3000 - 1024
    assert retain_once(store, 1000) == 0
    store.close()


def test_an_offset_is_never_used_again(tmp_path):
    path = str(tmp_path)
    store = StoreCore(path, retention_ms=1)
    append_entries(store, [("g", "s", b"x")] * 10, receive_ms=0)
    assert drain(store, 1000) == 10
    assert store.logs() == [("g", 0, 10, 10, 0, 0, 0)]
    store.close()
    store = StoreCore(path)
    assert store.logs() == [("g", 0, 10, 10, 0, 0, 0)]
    assert append_entries(store, [("g", "s", b"y")]) == [(10, "ok")]
    assert [entry[0] for entry in store.read("g", 0, 0)] == [10]
    store.close()


def test_memory_is_bounded_and_the_oldest_make_room():
    store = StoreCore(None, max_bytes=100_000)
    for _ in range(100):
        append_entries(store, [("a", "s", b"x" * 5000), ("b", "s", b"y")])
    stats = store.stats()
    kept = sum(log[4] for log in store.logs())
    assert stats["dropped_entries"] + kept == 200
    assert 0 < sum(log[6] for log in store.logs()) <= 100_000
    for topic, partition, first, following, *_ in store.logs():
        assert following == 100
        assert [entry[0] for entry in store.read(topic, partition, 0)] == list(range(first, following))
    store.close()


def test_an_entry_larger_than_the_memory_is_refused():
    store = StoreCore(None, max_bytes=10_000)
    assert append_entries(store, [("g", "s", b"x" * 20_000), ("g", "s", b"y")]) == [(0, "disk full"), (0, "ok")]
    store.close()


def test_dropping_makes_room_under_max_bytes(tmp_path):
    store = StoreCore(str(tmp_path), max_bytes=1 << 20, retention_bytes=500_000)
    for n in range(100):
        [(offset, status)] = append_entries(store, [("g", "s", b"x" * 100_000)])
        assert (offset, status) == (n, "ok")
        drain(store, 0)
    assert (tmp_path / "data.mdb").stat().st_size < 4 << 20  # freed pages are used again
    store.close()


def test_the_map_grows_with_the_data(tmp_path):
    store = StoreCore(str(tmp_path), map_bytes=1 << 20)
    value = b"x" * 300_000
    for n in range(30):
        assert append_entries(store, [("g", "s", value)]) == [(n, "ok")]
    assert [entry[2] == value for entry in store.read("g", 0, 0, max_bytes=1 << 30)] == [True] * 30
    assert store.stats()["failures"] == 0
    store.close()
