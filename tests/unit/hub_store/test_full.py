"""A full store: everything of the commit is refused, nothing is half done, and it recovers."""

from dataproxy._core.hub.storecore import StoreCore


def test_over_max_bytes_the_whole_commit_is_refused(tmp_path):
    store = StoreCore(str(tmp_path), max_bytes=1_000_000)
    assert store.append_for_test([("g", "s", b"x" * 400_000)] * 2) == [(0, "ok"), (1, "ok")]
    before = (store.logs(), store.counts())
    refused = store.append_for_test([("g", "s", b"small"), ("h", "new", b"x" * 400_000)])
    assert [status for _, status in refused] == ["disk full", "disk full"]
    assert (store.logs(), store.counts()) == before
    assert store.stats()["failures"] == 1
    assert "MAP_FULL" in store.stats()["last_error"]
    assert store.append_for_test([("g", "s", b"small")]) == [(2, "ok")]
    store.close()
    store = StoreCore(str(tmp_path), max_bytes=2_000_000)
    assert store.append_for_test([("h", "new", b"x" * 400_000)]) == [(0, "ok")]
    store.close()


def test_room_comes_back_with_retention(tmp_path):
    store = StoreCore(str(tmp_path), max_bytes=1_000_000, retention_ms=10)
    fine = 0
    while store.append_for_test([("g", "s", b"x" * 100_000)], receive_ms=0)[0][1] == "ok":
        fine += 1
    assert fine == 9
    while store.retain_for_test(1000):
        pass
    assert store.append_for_test([("g", "s", b"x" * 100_000)]) == [(9, "ok")]
    store.close()


def test_a_reserve_for_retention_is_kept(tmp_path):
    StoreCore(str(tmp_path)).close()
    assert (tmp_path / "reserve").stat().st_size == 4 << 20
    (tmp_path / "reserve").unlink()
    StoreCore(str(tmp_path)).close()
    assert (tmp_path / "reserve").stat().st_size == 4 << 20
