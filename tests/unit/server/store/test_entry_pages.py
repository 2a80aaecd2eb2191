"""Pages of stored requests: what a range holds, what it does not, and what was dropped meanwhile."""

import json
from types import SimpleNamespace

import pyarrow as pa
import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.wire.inlong import message
from dataproxy.errors import HubError, StoreError
from dataproxy.hub.web.pages import entries as entry_pages
from dataproxy.hub.web.pages.entries import Range, entries_page, logs_page
from dataproxy.stored.arrow import ArrowRows
from dataproxy.stored.entry import StoredEntry
from tests.native.probe_feed import append_entries, retain_once


def entry(stream, body, group="g"):
    return (group, stream, message.encode(1, [({"groupId": group, "streamId": stream, "dt": "5"}, [body])]))


@pytest.fixture(params=["durable", "memory"])
def store(request, tmp_path):
    core = StoreCore(str(tmp_path / "store") if request.param == "durable" else None, retention_ms=100)
    yield core
    core.close()


@pytest.fixture
def hub(store):
    return SimpleNamespace(_view=lambda: store, _store_name="here")


def page(hub, start, end, *, stream=None, partition=0, group="g"):
    with pa.ipc.open_stream(entries_page(hub, Range(group, stream, partition, start, end))) as opened:
        table = opened.read_all()
        facts = {key.decode(): value.decode() for key, value in opened.schema.metadata.items()}
    assert facts.pop("store") == "here"
    assert facts.pop("entries") == str(len(table))
    return table.to_pylist(), facts


def offsets(rows):
    return [row["offset"] for row in rows]


def fill(store, entries=10, receive_ms=0):
    append_entries(store, [entry(f"s{n % 2}", b"%d" % n) for n in range(entries)], receive_ms=receive_ms)


@pytest.mark.parametrize(("start", "end"), [(0, 10), (0, 1), (3, 7), (9, 10), (5, 5), (10, 10), (7, 3)])
def test_a_range_is_what_it_says(store, hub, start, end):
    fill(store)
    rows, facts = page(hub, start, end)
    assert offsets(rows) == list(range(start, end))
    assert facts == {"next": str(end)}


def test_a_range_of_one_stream(store, hub):
    fill(store)
    rows, facts = page(hub, 2, 8, stream="s1")
    assert offsets(rows) == [3, 5, 7]
    assert facts == {"next": "8"}
    assert page(hub, 2, 3, stream="s1") == ([], {"next": "3"})
    assert page(hub, 0, 10, stream="none") == ([], {"next": "10"})


def test_an_entry_is_as_it_was_stored(store, hub):
    append_entries(store, [entry("s", b"body")], data_time_ms=7, receive_ms=9, source="10.0.0.1", partition=3)
    [row], _ = page(hub, 0, 1, partition=3)
    assert row.pop("value") == entry("s", b"body")[2]
    assert row == {"offset": 0, "receive_ms": 9, "data_time_ms": 7, "stream_id": "s", "source": "10.0.0.1"}


def test_a_page_is_bounded_and_the_next_one_goes_on(store, hub, monkeypatch):
    monkeypatch.setattr(entry_pages, "_PAGE_BYTES", 1000)
    append_entries(store, [entry("s", bytes(size)) for size in (10, 400, 5000, 10, 10, 5000, 10)])
    seen, place, pages = [], 0, 0
    while place < 7:
        body = entries_page(hub, Range("g", None, 0, place, 7))
        assert len(body) < 8000
        rows, facts = page(hub, place, 7)
        seen += offsets(rows)
        place, pages = int(facts["next"]), pages + 1
    assert seen == list(range(7))
    assert pages == 3


def test_entries_that_were_dropped_are_named(store, hub):
    fill(store)
    append_entries(store, [entry("s0", b"new")] * 5, receive_ms=1000)
    while retain_once(store, 1000):
        pass
    rows, facts = page(hub, 3, 12)
    assert offsets(rows) == [10, 11]
    assert facts == {"next": "12", "lost": "3-10"}
    assert page(hub, 3, 7) == ([], {"next": "7", "lost": "3-7"})
    assert page(hub, 10, 12)[1] == {"next": "12"}


def test_of_one_stream_the_doubt_is_told_and_not_more(store, hub):
    fill(store)
    append_entries(store, [entry("s1", b"new")] * 2 + [entry("s0", b"new")] * 2, receive_ms=1000)
    while retain_once(store, 1000):
        pass
    rows, facts = page(hub, 3, 14, stream="s0")
    assert offsets(rows) == [12, 13]
    assert facts == {"next": "14", "lost": "3-10"}
    assert page(hub, 10, 14, stream="s0")[1] == {"next": "14"}, "entries 10 and 11 are there, and of another stream"


def test_what_the_log_does_not_have_is_refused(store, hub):
    fill(store)
    with pytest.raises(ValueError, match="ends at offset 10: to=11 is after it"):
        page(hub, 0, 11)


def test_a_log_that_is_gone_has_lost_all(store, hub):
    assert page(hub, 0, 3, partition=9) == ([], {"next": "3", "lost": "0-3"})


def test_a_damaged_entry_is_an_error_when_it_comes_first(tmp_path):
    path = tmp_path / "damaged"
    store = StoreCore(str(path))
    append_entries(store, [entry("s", b"%d" % n * 40) for n in range(4)])
    store.close()
    data = path.joinpath("data.mdb").read_bytes()
    path.joinpath("data.mdb").write_bytes(data.replace(b"2" * 40, b"2" * 39 + b"X"))
    store = StoreCore(str(path))
    hub = SimpleNamespace(_view=lambda: store, _store_name="here")
    rows, facts = page(hub, 0, 4)
    assert (offsets(rows), facts) == ([0, 1], {"next": "2"})
    with pytest.raises(StoreError):
        page(hub, 2, 4)
    assert offsets(page(hub, 3, 4)[0]) == [3]
    store.close()


def test_logs_and_their_offsets_at_a_time(store, hub):
    for receive_ms in range(100, 200, 10):
        append_entries(store, [entry("s", b"x")], receive_ms=receive_ms)
    append_entries(store, [entry("s", b"x")], receive_ms=150, partition=2)
    append_entries(store, [entry("s", b"x", group="other")], receive_ms=150)

    def at(time_ms):
        found = json.loads(logs_page(hub, "g", time_ms))
        assert found["store"] == "here"
        return {row["partition"]: row["offset"] for row in found["logs"]}

    assert [at(time_ms)[0] for time_ms in (0, 100, 101, 110, 150, 190, 191, 2**63 - 1)] == [0, 0, 1, 1, 5, 9, 10, 10]
    assert at(150)[2] == 0
    assert at(151)[2] == 1
    [first, second] = json.loads(logs_page(hub, "g", None))["logs"]
    assert first | {"bytes": 0} == {
        "partition": 0, "first_offset": 0, "next_offset": 10, "entries": 10, "records": 10, "bytes": 0,
    }  # fmt: skip
    assert (second["partition"], second["next_offset"]) == (2, 1)
    assert json.loads(logs_page(hub, "none", 5)) == {"store": "here", "logs": []}


def test_a_hub_without_pyarrow_says_so(store, hub, monkeypatch):
    fill(store)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(HubError, match="not installed where the hub runs: pyarrow"):
        page(hub, 0, 1)


def test_batches_end_at_the_bytes_that_were_asked_for():
    def container(bodies, **attrs):
        return message.encode(1, [({"groupId": "g", "streamId": "s", **attrs}, bodies)])

    rows = ArrowRows(1000)
    long = StoredEntry("g", 0, 0, 1, 1, "s", "", container([b"x"] * 50, long="y" * 300))
    sizes = [batch.num_rows for batch in rows.add(long, 100)]
    sizes += [batch.num_rows for batch in rows.take(100)]
    assert sum(sizes) == 50
    assert max(sizes) <= 3, "attributes count once for each record"
    assert not rows.is_full(100)
    list(rows.add(StoredEntry("g", 0, 1, 1, 1, "s", "", container([b"x" * 1000])), 100))
    assert rows.is_full(100)
