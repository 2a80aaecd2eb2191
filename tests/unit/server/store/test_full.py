"""A full store: everything of the commit is refused, nothing is half done, and it recovers."""

import resource

from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once


def test_over_max_bytes_the_whole_commit_is_refused(tmp_path):
    store = StoreCore(str(tmp_path), max_bytes=1_000_000)
    assert append_entries(store, [("g", "s", b"x" * 400_000)] * 2) == [(0, "ok"), (1, "ok")]
    before = (store.logs(), store.counts())
    refused = append_entries(store, [("g", "s", b"small"), ("h", "new", b"x" * 400_000)])
    assert [status for _, status in refused] == ["disk full", "disk full"]
    assert (store.logs(), store.counts()) == before
    assert store.stats()["failures"] == 1
    assert "MAP_FULL" in store.stats()["last_error"]
    assert append_entries(store, [("g", "s", b"small")]) == [(2, "ok")]
    store.close()
    store = StoreCore(str(tmp_path), max_bytes=2_000_000)
    assert append_entries(store, [("h", "new", b"x" * 400_000)]) == [(0, "ok")]
    store.close()


def test_room_comes_back_with_retention(tmp_path):
    store = StoreCore(str(tmp_path), max_bytes=1_000_000, retention_ms=10)
    fine = 0
    while append_entries(store, [("g", "s", b"x" * 100_000)], receive_ms=0)[0][1] == "ok":
        fine += 1
    assert fine == 9
    while retain_once(store, 1000):
        pass
    assert append_entries(store, [("g", "s", b"x" * 100_000)]) == [(9, "ok")]
    store.close()


def test_a_full_store_is_in_trouble_until_what_it_refused_fits(tmp_path):
    """The clock takes a few bytes each second: that they fit says nothing of what was refused."""
    store = StoreCore(str(tmp_path), max_bytes=1_000_000, retention_ms=1000)
    while append_entries(store, [("g", "s", b"x" * 200_000)], receive_ms=0)[0][1] == "ok":
        pass
    for now in range(0, 1000, 100):
        assert retain_once(store, now) == 0
        assert "MAP_FULL" in store.stats()["trouble"]
    assert append_entries(store, [("g", "s" * 256, b"refused name")], receive_ms=0) == [(0, "over the limit")]
    assert store.stats()["trouble"], "nothing was written"
    while retain_once(store, 2000):
        pass
    retain_once(store, 2001)
    assert store.stats()["trouble"] == "", "without a request"
    while append_entries(store, [("g", "s", b"x" * 200_000)])[0][1] == "ok":
        pass
    assert store.stats()["trouble"]
    assert append_entries(store, [("g", "s", b"small")])[0][1] == "ok"
    assert store.stats()["trouble"] == "", "it takes data"
    store.close()


def test_more_than_the_limit_leaves_no_lasting_trouble(tmp_path):
    store = StoreCore(str(tmp_path), max_bytes=1_000_000)
    assert append_entries(store, [("g", "s", b"x" * 2_000_000)])[0][1] == "disk full"
    assert store.stats()["trouble"]
    retain_once(store)
    assert store.stats()["trouble"] == ""
    store.close()


def test_a_full_disk_is_in_trouble_until_there_is_room(tmp_path):
    store = StoreCore(str(tmp_path))
    append_entries(store, [("g", "s", b"x" * 100_000)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5 << 20, hard))
        while append_entries(store, [("g", "s", b"x" * 1_000_000)])[0][1] == "ok":
            pass
        for _ in range(5):
            commits = store.stats()["failures"]
            retain_once(store)
            assert store.stats()["trouble"]
            assert store.stats()["failures"] == commits
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "reserve").stat().st_size == 4 << 20
    retain_once(store)
    assert store.stats()["trouble"] == ""
    assert (tmp_path / "reserve").stat().st_size == 4 << 20
    store.close()


def test_a_reserve_for_retention_is_kept(tmp_path):
    StoreCore(str(tmp_path)).close()
    assert (tmp_path / "reserve").stat().st_size == 4 << 20
    (tmp_path / "reserve").unlink()
    StoreCore(str(tmp_path)).close()
    assert (tmp_path / "reserve").stat().st_size == 4 << 20
