"""Appending and reading, the same for the durable store and the one in memory."""

import threading

import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import ClosedError
from tests.native.probe_feed import append_entries


@pytest.fixture(params=["durable", "memory"])
def store(request, tmp_path):
    core = StoreCore(str(tmp_path / "store") if request.param == "durable" else None)
    yield core
    core.close()


def test_offsets_are_dense_in_each_log(store):
    first = append_entries(store, [("a", "s", b"1"), ("b", "s", b"2"), ("a", "t", b"3")])
    other = append_entries(store, [("a", "s", b"4")], partition=7)
    last = append_entries(store, [("a", "s", b"5"), ("b", "t", b"6")])
    assert first == [(0, "ok"), (0, "ok"), (1, "ok")]
    assert other == [(0, "ok")]
    assert last == [(2, "ok"), (1, "ok")]
    assert [log[:4] for log in sorted(store.logs())] == [("a", 0, 0, 3), ("a", 7, 0, 1), ("b", 0, 0, 2)]


def test_an_entry_is_read_back_with_its_header(store):
    append_entries(store, [("g", "s", b"body")], records=5, data_time_ms=1234, receive_ms=99, source="10.0.0.9")
    assert store.read("g", 0, 0) == [(0, (99, 1234, 5, "s", "10.0.0.9", ""), b"body")]


@pytest.mark.parametrize("size", [0, 1, 299, 2000, 2100, 4096, 400_000, 5_000_000])
def test_values_of_every_size(store, size):
    value = bytes(i % 251 for i in range(min(size, 1000))) * (size // 1000 + 1)
    value = value[:size]
    append_entries(store, [("g", "s", value), ("g", "s", b"after")])
    assert [entry[2] for entry in store.read("g", 0, 0, max_bytes=1 << 30)] == [value, b"after"]


def test_reading_from_an_offset_and_in_batches(store):
    append_entries(store, [("g", f"s{i % 3}", b"%03d" % i) for i in range(100)])
    assert [entry[0] for entry in store.read("g", 0, 97)] == [97, 98, 99]
    assert store.read("g", 0, 100) == []
    assert [entry[0] for entry in store.read("g", 0, 10, max_entries=3)] == [10, 11, 12]
    assert len(store.read("g", 0, 0, max_bytes=1)) == 1
    assert store.read("g", 1, 0) == store.read("other", 0, 0) == []


def test_the_stream_is_an_index(store):
    append_entries(store, [("g", f"s{i % 3}", b"%03d" % i) for i in range(100)])
    assert store.stream_offsets("g", 0, "s1", 0, 4) == [1, 4, 7, 10]
    assert store.stream_offsets("g", 0, "s1", 95, 10) == [97]
    assert store.stream_offsets("g", 0, "missing", 0, 10) == []
    found = store.read("g", 0, 50, max_entries=3, stream="s2")
    assert [(entry[0], entry[1][3], entry[2]) for entry in found] == [
        (50, "s2", b"050"),
        (53, "s2", b"053"),
        (56, "s2", b"056"),
    ]
    assert store.read("g", 0, 0, stream="s") == []


def test_counts_by_stream_add_partitions_up(store):
    append_entries(store, [("g", "s", b"x" * 10), ("g", "t", b"y")], records=3)
    append_entries(store, [("g", "s", b"z")], partition=1, records=4)
    counts = store.counts()
    assert {key: value[:2] for key, value in counts.items()} == {("g", "s"): (2, 7), ("g", "t"): (1, 3)}
    assert counts["g", "s"][2] - counts["g", "t"][2] == counts["g", "t"][2] + 9
    assert sum(log[6] for log in store.logs()) == sum(value[2] for value in counts.values())


def test_a_name_over_its_limit_refuses_that_entry_alone(store):
    results = append_entries(
        store, [("g", "s" * 256, b"1"), ("", "s", b"2"), ("g", "s" * 255, b"3"), ("h" * 256, "s", b"4")]
    )
    assert [status for _, status in results] == ["over the limit", "over the limit", "ok", "over the limit"]
    assert store.counts().keys() == {("g", "s" * 255)}
    assert append_entries(store, [("g", "s", b"5")]) == [(1, "ok")]


def test_names_of_any_text(store):
    names = ["", " ", "ä/ö\n", "日本", "a" * 255]
    append_entries(store, [("group é", name, name.encode()) for name in names])
    assert {entry[1][3]: entry[2].decode() for entry in store.read("group é", 0, 0)} == {name: name for name in names}


def test_many_logs_and_streams(store):
    wanted = [(f"g{i % 50}", f"s{i}", b"%d" % i) for i in range(3000)]
    append_entries(store, wanted)
    assert len(store.logs()) == 50
    assert len(store.counts()) == 3000
    assert [entry[2] for entry in store.read("g7", 0, 0)] == [b"%d" % i for i in range(7, 3000, 50)]


def test_no_entries_is_refused(store):
    with pytest.raises(ValueError, match="at least one"):
        append_entries(store, [])


def test_a_closed_store_says_so(store):
    store.close()
    store.close()
    for call in (
        store.logs,
        store.counts,
        lambda: store.read("g", 0, 0),
        lambda: append_entries(store, [("g", "s", b"")]),
    ):
        with pytest.raises(ClosedError, match="closed"):
            call()


def test_a_reader_beside_the_appender_sees_whole_commits_in_order(store):
    thread = threading.Thread(target=store.run_committer)
    thread.start()
    wrong = []

    def read() -> None:
        place = 0
        while place < 1000:
            for offset, _, value in store.read("g", 0, place):
                if offset != place or value != b"%d" % place:
                    wrong.append((offset, value))
                place += 1

    reader = threading.Thread(target=read)
    reader.start()
    for start in range(0, 1000, 20):
        append_entries(store, [("g", "s", b"%d" % i) for i in range(start, start + 20)])
    reader.join()
    store.stop()
    thread.join()
    assert wrong == []


def test_a_durable_store_is_there_again(tmp_path):
    path = str(tmp_path)
    store = StoreCore(path)
    append_entries(store, [("g", f"s{i % 2}", b"%d" % i) for i in range(10)], records=2)
    before = (store.logs(), store.counts(), store.read("g", 0, 0))
    store.close()
    store = StoreCore(path)
    assert (store.logs(), store.counts(), store.read("g", 0, 0)) == before
    assert append_entries(store, [("g", "s1", b"x"), ("h", "s1", b"x")]) == [(10, "ok"), (0, "ok")]
    store.close()


def test_a_view_of_the_same_process_shares_the_store(tmp_path):
    path = str(tmp_path)
    store = StoreCore(path)
    append_entries(store, [("g", "s", b"1")])
    view = StoreView.open(path)
    other = StoreView.open(path)
    append_entries(store, [("g", "s", b"2")])
    assert [entry[2] for entry in view.read("g", 0, 0)] == [b"1", b"2"]
    other.close()
    store.close()
    assert view.read("g", 0, 1)[0][2] == b"2"
    store = StoreCore(path)  # while a view is open
    append_entries(store, [("g", "s", b"3")])
    assert view.read("g", 0, 2)[0][2] == b"3"
    store.close()
    view.close()


@pytest.mark.parametrize("group", ["g", "known"])
def test_a_stream_name_over_the_limit_leaves_no_trace(tmp_path, group):
    path = str(tmp_path / "store")
    store = StoreCore(path)
    assert append_entries(store, [("known", "s", b"x")]) == [(0, "ok")]
    made = [(group, "s" * 256, b"x"), ("after", "s", b"y")]
    assert append_entries(store, made) == [(0, "over the limit"), (0, "ok")]
    assert [log[:4] for log in store.logs()] == [("after", 0, 0, 1), ("known", 0, 0, 1)]
    store.close()
    del store
    again = StoreCore(path)
    assert append_entries(again, [("after", "s", b"z"), (group, "t", b"")])[0] == (1, "ok")
    again.close()
