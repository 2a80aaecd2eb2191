"""Decoded records and Arrow batches from entries of a durable store."""

import threading

import pyarrow as pa
import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.wire.inlong import message
from dataproxy.errors import ConfigError, StoreError
from dataproxy.hub.reading.records import LogInfo, Record, StreamCount, read_records
from dataproxy.hub.reading.store import open_store
from tests.native.probe_feed import append_entries


def container(stream, bodies, *, group="g", dt="1700000000123", **attrs):
    return message.encode(1, [({"groupId": group, "streamId": stream, "dt": dt, **attrs}, bodies)])


@pytest.fixture
def store(tmp_path):
    core = StoreCore(str(tmp_path))
    yield core
    core.close()


@pytest.fixture
def reader(store, tmp_path):
    with open_store(tmp_path) as opened:
        yield opened


def test_a_record_says_everything(store, reader):
    append_entries(store, [("g", "s", container("s", [b"a", b"b"], k="v"))], records=2, receive_ms=7, source="10.1.1.1")
    attrs = {"groupId": "g", "streamId": "s", "dt": "1700000000123", "k": "v"}
    assert list(reader.records("g")) == [
        Record("g", "s", body, attrs, 1700000000123, "g", 0, 0, i, 7, "10.1.1.1") for i, body in enumerate([b"a", b"b"])
    ]


def test_without_own_attributes_the_entry_counts(store, reader):
    append_entries(store, [("g", "s", message.encode(1, [({"k": "v"}, [b"a"])]))], data_time_ms=55)
    [record] = reader.records("g")
    assert (record.group_id, record.stream_id, record.dt_ms) == ("g", "s", 55)


def test_streams_partitions_and_start(store, reader):
    for partition in range(3):
        numbers = range(partition, 3000, 3)
        made = [("g", f"s{n % 2}", container(f"s{n % 2}", [b"%d" % n])) for n in numbers]
        append_entries(store, made, partition=partition)
    append_entries(store, [("other", "s0", container("s0", [b"no"], group="other"))])
    assert sorted(int(record.body) for record in reader.records("g")) == list(range(3000))
    assert sorted(int(r.body) for r in reader.records("g", "s1")) == list(range(1, 3000, 2))
    found = [(r.partition, r.offset) for r in reader.records("g", start=998)]
    assert sorted(found) == [(p, offset) for p in range(3) for offset in (998, 999)]
    for partition in range(3):
        offsets = [r.offset for r in reader.records("g") if r.partition == partition]
        assert offsets == list(range(1000))
    assert list(reader.records("missing")) == list(reader.records("g", "missing")) == []


def test_counts_and_logs(store, reader):
    value = container("s", [b"a", b"b"])
    append_entries(store, [("g", "s", value)], records=2)
    size = reader.logs()[0].bytes
    assert reader.logs() == [LogInfo("g", 0, 0, 1, 1, 2, size)]
    assert reader.counts() == {("g", "s"): StreamCount(1, 2, size)}
    assert size > len(value)


def test_following_sees_new_records_and_ends_with_the_store(store, reader):
    append_entries(store, [("g", "s", container("s", [b"0"]))])
    seen = threading.Semaphore(0)
    found = []

    def follow() -> None:
        for record in reader.records("g", follow=True):
            found.append(record.body)
            seen.release()

    thread = threading.Thread(target=follow)
    thread.start()
    for n in range(1, 5):
        assert seen.acquire(timeout=60)
        append_entries(store, [("g", "s", container("s", [b"%d" % n]))])
    assert seen.acquire(timeout=60)
    reader.close()
    thread.join(60)
    assert found == [b"%d" % n for n in range(5)]


def test_records_in_memory():
    store = StoreCore(None)
    append_entries(store, [("g", "s", container("s", [b"a"]))])
    assert [record.body for record in read_records(store, "g", "s")] == [b"a"]
    store.close()


def test_arrow_batches(store, reader):
    append_entries(store, [("g", "s", container("s", [b"%d" % n, b"\x00\xff"], n=str(n))) for n in range(10)])
    append_entries(store, [("h", "t", container("t", [b"h"], group="h"))])
    batches = list(reader.record_batches("g", max_rows=7))
    assert sum(batch.num_rows for batch in batches) == 20
    assert max(batch.num_rows for batch in batches) <= 7
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["body"] for row in rows] == [body for n in range(10) for body in (b"%d" % n, b"\x00\xff")]
    assert [dict(row["attrs"])["n"] for row in rows] == [str(n) for n in range(10) for _ in range(2)]
    assert rows[3].items() >= {"offset": 1, "index": 1, "dt": 1700000000123, "topic": "g", "partition": 0}.items()
    assert sum(batch.num_rows for batch in reader.record_batches()) == 21
    assert list(reader.record_batches("none")) == []


def test_arrow_rows_equal_records(store, reader):
    pairs = [(b"%d" % n, {"own": str(n % 2)}) for n in range(6)]
    append_entries(store, [("g", "s", message.encode(3, [({"streamId": "s"}, pairs)])) for _ in range(3)])
    rows = [row for batch in reader.record_batches("g") for row in batch.to_pylist()]
    found = [
        {**{name: getattr(record, name) for name in Record.__slots__ if name != "dt_ms"}, "dt": record.dt_ms}
        for record in reader.records("g")
    ]
    assert [{**row, "attrs": dict(row["attrs"])} for row in rows] == found
    assert len(found) == 18


def test_arrow_columns_are_whole_and_of_the_promised_types(store, reader):
    text = pa.string()
    for count in (1, 5, 300):
        append_entries(store, [("g", "s", container("s", [b"x" * n for n in range(count)], n=str(count)))])
    for batch in reader.record_batches("g", max_rows=100):
        batch.validate(full=True)
        assert dict(zip(batch.schema.names, batch.schema.types, strict=True)) == {
            **dict.fromkeys(("group_id", "stream_id", "topic", "source"), text),
            **dict.fromkeys(("dt", "offset", "receive_ms"), pa.int64()),
            **dict.fromkeys(("partition", "index"), pa.int32()),
            "body": pa.binary(),
            "attrs": pa.map_(text, text),
        }
        assert all(column.null_count == 0 for column in batch.columns)


def test_an_entry_that_is_no_container(store, reader):
    append_entries(store, [("g", "s", b"not a container"), ("g", "s", container("s", [b"a"]))])
    with pytest.raises(StoreError, match=r"entry 0 of log \('g', 0\) cannot be decoded") as caught:
        list(reader.records("g"))
    assert caught.value.hint == "continue with start=1"
    assert [record.body for record in reader.records("g", start=1)] == [b"a"]


def test_a_negative_start(reader):
    for call in (reader.records, reader.record_batches):
        with pytest.raises(ConfigError, match="start -1"):
            call("g", start=-1)
