"""Group commits: order, bounds of the queue, draining, and the life of the committing thread."""

import threading

import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy.errors import ClosedError
from tests.native.probe_feed import append_at_once, append_entries, retain_once


def run(store):
    thread = threading.Thread(target=store.run_committer)
    thread.start()
    return thread


def run_and_wait(store):
    """Return the committing thread once it has made a commit, and the number of entries that took."""
    thread = run(store)
    n = 0
    while not store.stats()["commits"]:  # who is too early appends without it
        n += len(append_entries(store, [("g", "s", b"x")]))
    return thread, n


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
@pytest.mark.parametrize("queue_bytes", [1, 1 << 20])
def test_every_thread_gets_its_own_entries_back_in_order(tmp_path, durable, queue_bytes):
    store = StoreCore(str(tmp_path) if durable else None, queue_bytes=queue_bytes, commit_bytes=10_000)
    thread = run(store)
    found = {}

    def produce(name: str) -> None:
        offsets = []
        for n in range(40):
            results = append_entries(store, [(name, "s", b"%d" % (10 * n + i)) for i in range(10)])
            assert {status for _, status in results} == {"ok"}
            offsets += [offset for offset, _ in results]
        found[name] = offsets

    producers = [threading.Thread(target=produce, args=(f"g{i}",)) for i in range(4)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    store.stop()
    thread.join()
    assert found == {f"g{i}": list(range(400)) for i in range(4)}
    assert store.stats()["entries"] == 1600
    assert store.stats()["queued_bytes"] == 0
    for i in range(4):
        assert [entry[2] for entry in store.read(f"g{i}", 0, 0)] == [b"%d" % n for n in range(400)]
    store.close()


def test_threads_that_commit_at_once_share_a_store_with_the_committing_thread():
    store = StoreCore(None, retention_bytes=50_000, retain_every_ms=1)
    thread = run(store)
    found = {}

    def produce(name: str) -> None:
        offsets = []
        at_once = 0
        for n in range(100):
            entries = [(name, "s", b"%d" % (10 * n + i)) for i in range(10)]
            results = append_at_once(store, entries)
            at_once += results is not None
            results = results or append_entries(store, entries)
            assert {status for _, status in results} == {"ok"}
            offsets += [offset for offset, _ in results]
        found[name] = offsets, at_once

    producers = [threading.Thread(target=produce, args=(f"g{i}",)) for i in range(4)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    store.stop()
    thread.join()
    assert [found[f"g{i}"][0] for i in range(4)] == [list(range(1000))] * 4
    assert sum(at_once for _, at_once in found.values()) > 0
    assert store.stats()["entries"] == 4000
    assert store.stats()["queued_bytes"] == 0
    store.close()


def test_only_a_store_that_waits_for_nothing_is_appended_to_at_once(tmp_path):
    durable = StoreCore(str(tmp_path))
    thread, _ = run_and_wait(durable)
    assert append_at_once(durable, [("g", "s", b"x")]) is None
    durable.close()
    thread.join()


def test_nothing_is_committed_at_once_before_the_thread_runs_or_after_it_was_stopped():
    store = StoreCore(None)
    assert append_at_once(store, [("g", "s", b"x")]) is None
    thread, n = run_and_wait(store)
    results = None
    while results is None:  # until the thread has left its last commit
        results = append_at_once(store, [("g", "s", b"x")] * 2)
    assert results == [(n, "ok"), (n + 1, "ok")]
    store.stop()
    thread.join()
    assert append_at_once(store, [("g", "s", b"x")]) is None
    assert [entry[0] for entry in store.read("g", 0, 0)] == list(range(n + 2))
    store.close()


def test_a_commit_is_cut_at_its_size():
    store = StoreCore(None, commit_bytes=10_000)
    thread = run(store)
    assert len(append_entries(store, [("g", "s", b"x" * 1000)] * 100)) == 100
    assert store.stats()["commits"] >= 10
    store.close()
    thread.join()


def test_refusals_come_back_through_the_committer(tmp_path):
    store = StoreCore(str(tmp_path), max_bytes=100_000)
    thread = run(store)
    assert append_entries(store, [("g", "s", b"x" * 200_000)])[0][1] == "disk full"
    assert append_entries(store, [("g", "s", b"x")]) == [(0, "ok")]
    assert store.stats()["refused"] == 1
    store.close()
    thread.join()


def test_after_stop_nothing_is_taken():
    store = StoreCore(None)
    thread = run(store)
    store.stop()
    thread.join()
    assert append_entries(store, [("g", "s", b"x")]) == [(0, "closed")]
    with pytest.raises(ClosedError, match="started before"):
        store.run_committer()
    store.close()


def test_the_committer_applies_the_limits(tmp_path):
    store = StoreCore(str(tmp_path), retention_ms=1, retain_every_ms=1)
    thread = run(store)
    append_entries(store, [("g", "s", b"x")] * 3000, receive_ms=0)
    while store.logs()[0][4]:
        append_entries(store, [("h", "s", b"y")])
    assert store.logs()[0] == ("g", 0, 3000, 3000, 0, 0, 0)
    store.close()
    thread.join()


def test_retention_is_left_to_a_running_committer():
    store = StoreCore(None)
    thread = run(store)
    append_entries(store, [("g", "s", b"x")])
    with pytest.raises(ClosedError, match="committer runs"):
        retain_once(store, 0)
    store.close()
    thread.join()
