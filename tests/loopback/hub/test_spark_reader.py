"""The reader of Spark's without Spark: options, ranges, what was dropped, and batches that stay small."""

import datetime as dt
import http.server
import json
import logging
import pickle
import random
import threading

import pytest

from dataproxy import Producer
from dataproxy._core.wire.inlong import message
from dataproxy.errors import ConfigError, DataProxyError, HubError, StoreError, TransportError
from dataproxy.hub import Hub, LogInfo
from dataproxy.hub.web.pages import entries as entry_pages
from dataproxy.producer.ingest.reserved import RESERVED_ATTRS
from dataproxy.spark.reading.columns import READ_SCHEMA, record_columns
from dataproxy.spark.reading.plan import plan_read
from dataproxy.spark.reading.source import HubReader
from dataproxy.spark.shape import Shape
from dataproxy.stored.arrow import ArrowRows
from dataproxy.stored.entry import StoredEntry
from tests.loopback.hub.peer import wait_until


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("TARGET", "GROUP_ID"):
        monkeypatch.delenv(f"DATAPROXY_{name}", raising=False)


def plan(hub, **options):
    """Return the plan of a read of group g; a None leaves an option out."""
    given = {"target": getattr(hub, "manager_url", hub), "groupId": "g", **options}
    return plan_read({name: value for name, value in given.items() if value is not None})


def batches(planned):
    """Yield the batches of all ranges, as tasks would that Spark has sent them to."""
    reader = pickle.loads(pickle.dumps(HubReader(planned, READ_SCHEMA)))
    for one in pickle.loads(pickle.dumps(reader.partitions())):
        yield from reader.read(one)


def rows(planned):
    return [row for batch in batches(planned) for row in batch.to_pylist()]


def bodies(planned):
    return sorted(int(row["value"]) for row in rows(planned))


def offsets(planned):
    return sorted(row["offset"] for row in rows(planned))


def send(hub, count, stream="s", start=0, size=0):
    """Send one request for each body, and wait until it is stored."""
    with Producer(hub.target, group_id="g") as producer:
        for n in range(start, start + count):
            producer.send(stream, b"%d" % n if not size else random.Random(n).randbytes(size)).result(timeout=60)


def logs_of(hub):
    return [LogInfo(*row) for row in hub._view().logs("g")]


@pytest.fixture
def small(start_hub):
    """Return a hub that keeps a megabyte."""
    return start_hub(max_store_bytes=1 << 20)


def test_a_group_that_is_not_there_has_no_rows(hub, caplog):
    assert rows(plan(hub, groupId="nothing")) == []
    assert "has nothing of group 'nothing'" in caplog.text
    assert list(HubReader(plan(hub), READ_SCHEMA).read(None)) == [], "Spark asks so where there are no ranges"


def test_parts_cover_a_log_once(hub):
    send(hub, 60)
    for size in ("1", "500", "1KiB", "3000", "1GiB"):
        parts = plan(hub, maxPartitionBytes=size)
        assert bodies(parts) == list(range(60))
        assert [part.start for part in parts.ranges] == [0, *(part.end for part in parts.ranges[:-1])]
    assert len(plan(hub, maxPartitionBytes="1").ranges) == 60
    assert len(plan(hub).ranges) == 1


def test_ranges_by_offset(hub):
    send(hub, 20)
    for start, end, expected in [
        ("5", "12", range(5, 12)),
        ('{"0": 5}', '{"0": 6}', range(5, 6)),
        ('{"g": {"0": -2}}', '{"g": {"0": -1}}', range(20)),
        ("earliest", "0", range(0)),
        ("20", "latest", range(0)),
        ("-2", "-1", range(20)),
        (None, "7", range(7)),
        ("18", None, range(18, 20)),
    ]:
        assert bodies(plan(hub, startingOffsets=start, endingOffsets=end)) == list(expected), (start, end)


def test_offsets_of_single_logs(start_hub):
    hub = start_hub(partitions=3)
    for number in range(9):
        send(hub, 3, f"s{number}")
    ends = {log.partition: log.next_offset for log in logs_of(hub)}
    assert len(ends) == 3
    assert len(rows(plan(hub))) == 27
    found = rows(plan(hub, startingOffsets=json.dumps({"1": ends[1] - 1}), endingOffsets='{"0": 2, "2": 0}'))
    assert {(row["partition"], row["offset"]) for row in found} == {(0, 0), (0, 1), (1, ends[1] - 1)}


def test_ranges_by_time(hub):
    send(hub, 5)
    last = max(record.receive_ms for record in hub.records("g"))
    wait_until(lambda: dt.datetime.now(dt.UTC).timestamp() * 1000 > last + 2)
    send(hub, 5, start=5)
    between = min(record.receive_ms for record in hub.records("g") if record.offset >= 5)
    assert between > last
    assert bodies(plan(hub, startingTimestamp=str(between))) == list(range(5, 10))
    assert bodies(plan(hub, endingTimestamp=str(between))) == list(range(5))
    assert bodies(plan(hub, startingTimestamp="0", endingTimestamp=str(2**62))) == list(range(10))
    assert bodies(plan(hub, startingTimestamp=str(2**62))) == []
    assert bodies(plan(hub, startingTimestamp=str(between), endingOffsets="7")) == [5, 6]
    assert bodies(plan(hub, startingTimestamp=str(between), endingTimestamp="0")) == []


def test_a_plan_holds_still(hub):
    send(hub, 5)
    planned = plan(hub)
    send(hub, 5, start=5)
    assert bodies(planned) == bodies(planned) == list(range(5))
    assert bodies(plan(hub)) == list(range(10))


def test_another_store_at_the_same_place_is_an_error():
    with Hub() as hub:
        send(hub, 5)
        port = hub.manager_port
        planned = plan(hub)
    with Hub(manager_port=port) as hub:
        send(hub, 5)
        with pytest.raises(StoreError, match="a different store than when the read was planned"):
            rows(planned)


def test_offsets_that_are_not_there_are_refused_at_once(small):
    send(small, 20, size=100_000)
    first = logs_of(small)[0].first_offset
    assert first > 2
    with pytest.raises(StoreError, match=rf"the offsets 2 to {first - 1} of partition 0 of group 'g' were") as caught:
        plan(small, startingOffsets="2")
    assert caught.value.code == "DATA_LOST"
    assert caught.value.details == {"group": "g", "partition": 0, "first_offset": 2, "next_offset": first}
    assert offsets(plan(small, startingOffsets="2", failOnDataLoss="false")) == list(range(first, 20))
    assert offsets(plan(small, startingOffsets="0", endingOffsets="1", failOnDataLoss="false")) == []
    with pytest.raises(ConfigError, match="ends at offset 20, but offset 21 was requested"):
        plan(small, endingOffsets="21")
    with pytest.raises(ConfigError, match="ends at offset 20, but offset 30 was requested"):
        plan(small, startingOffsets="30")
    assert rows(plan(small, startingOffsets="30", failOnDataLoss="false")) == []
    assert offsets(plan(small, endingOffsets="30", failOnDataLoss="false")) == list(range(first, 20))
    with pytest.raises(ConfigError, match="from 19 to 18 were requested, but the start is after the end"):
        plan(small, startingOffsets="19", endingOffsets="18")
    with pytest.raises(ConfigError, match=r"the partitions \[4\] of group 'g', which has \[0\]"):
        plan(small, endingOffsets='{"4": 1}')


@pytest.mark.parametrize("stream", ["", "s"])
def test_rows_dropped_behind_the_plan(small, stream, caplog):
    send(small, 5, size=100_000)
    planned, left = plan(small, streamId=stream), plan(small, streamId=stream, failOnDataLoss="false")
    assert len(rows(planned)) == 5
    send(small, 8, start=5, size=100_000)
    first = logs_of(small)[0].first_offset
    assert 0 < first < 5
    with pytest.raises(StoreError, match=f"the offsets 0 to {first - 1} of partition 0 of group 'g' were") as caught:
        rows(planned)
    assert caught.value.code == "DATA_LOST"
    assert ("whether some of them belonged to stream 's'" in str(caught.value)) == bool(stream)
    with caplog.at_level(logging.WARNING):
        assert offsets(left) == list(range(first, 5))
    assert f"the offsets 0 to {first - 1} of partition 0" in caplog.text
    send(small, 20, start=13, size=100_000)
    with pytest.raises(StoreError, match="the offsets 0 to 4 of partition 0 of group 'g' were dropped"):
        rows(planned)
    assert rows(left) == []


def test_batches_stay_small_whatever_is_in_an_entry(start_hub, monkeypatch):
    """Compressed entries unpack to much more than a page has; a batch is bounded in bytes and rows."""
    hub = start_hub()
    with Producer(hub.target, group_id="g") as producer:
        for _ in range(30):
            producer.send_batch("s", [b"x" * 1000] * 400).result(timeout=60)
        producer.send_batch("t", [b"y"] * 25_000).result(timeout=60)
    sizes = [(batch.num_rows, batch.get_total_buffer_size()) for batch in batches(plan(hub))]
    assert sum(count for count, _ in sizes) == sum(1 for _ in hub.records("g"))
    assert max(count for count, _ in sizes) <= 10_000
    assert max(size for _, size in sizes) < 24 << 20
    assert len(sizes) > 3


def test_many_pages_give_every_row_once(hub, monkeypatch):
    monkeypatch.setattr(entry_pages, "_PAGE_BYTES", 300)
    monkeypatch.setattr(entry_pages, "_PAGE_ENTRIES", 7)
    send(hub, 50)
    send(hub, 50, stream="t", start=50)
    assert bodies(plan(hub)) == list(range(100))
    assert bodies(plan(hub, streamId="t", maxPartitionBytes="2KiB")) == list(range(50, 100))


def test_a_hub_that_dies_between_pages_is_an_error(start_hub, monkeypatch):
    monkeypatch.setattr(entry_pages, "_PAGE_BYTES", 300)
    hub = start_hub()
    send(hub, 50)
    found = HubReader(plan(hub), READ_SCHEMA)
    seen = []
    monkeypatch.setattr(HubReader, "_shaped", lambda _, records: seen.append(records.num_rows) or records)
    monkeypatch.setattr(ArrowRows, "is_full", lambda rows, most: len(rows) > 0)
    reading = found.read(found.partitions()[0])
    next(reading)
    hub.close()
    with pytest.raises((TransportError, HubError)):
        list(reading)
    assert 0 < sum(seen) < 50


class NoHub(http.server.SimpleHTTPRequestHandler):
    """Serve files, as many a server does."""

    def log_message(self, *args):
        pass


def test_what_is_no_hub():
    with http.server.HTTPServer(("127.0.0.1", 0), NoHub) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with pytest.raises(HubError, match=r"HTTP 404.*check that the target is the Manager port of a hub"):
                plan(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()


def test_nobody_there():
    with pytest.raises(TransportError, match=r"the hub at http://127\.0\.0\.1:1 cannot be reached"):
        plan("http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stremId": "s"}, "no option 'stremId' of a read, did you mean 'streamId'"),
        ({"batchBytes": "1KiB"}, "option batchBytes is for writes"),
        ({"format": "json"}, "option format is for writes"),
        ({"groupId": None}, 'no group was given; set the option "groupId"'),
        ({"groupId": None, "target": None}, "CREATE TEMPORARY VIEW sink"),
        ({"target": "tcp://127.0.0.1:1"}, "accepts messages but cannot be read"),
        ({"target": "http://127.0.0.1:1,127.0.0.1:2"}, "names several addresses, but a read needs one hub"),
        ({"target": "http://user:word@h:1"}, "Spark shows the value"),
        ({"startingOffsets": "latest"}, "startingOffsets='latest' is not allowed; give earliest"),
        ({"endingOffsets": "earliest"}, "endingOffsets='earliest' is not allowed; give latest"),
        ({"startingOffsets": '{"0": -1}'}, "is not allowed"),
        ({"startingOffsets": '{"x": 1}'}, "is not allowed"),
        ({"startingOffsets": '{"h": {"0": 1}}'}, "is not allowed"),
        ({"startingOffsets": '{"0": "1"}'}, "is not allowed"),
        ({"startingOffsets": "[1]"}, "is not allowed"),
        ({"startingOffsets": "1.5"}, "is not allowed"),
        ({"startingOffsets": "true"}, "is not allowed"),
        ({"startingOffsets": "[" * 100_000}, "is not allowed"),
        ({"startingOffsets": "9" * 6000}, "is not allowed"),
        ({"startingOffsets": str(2**63)}, "is not allowed"),
        ({"startingOffsets": "-5"}, "is not allowed"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp='yesterday' is not a time; give milliseconds"),
        ({"endingTimestamp": "9" * 30}, "is not a time"),
        ({"startingTimestamp": "1", "startingOffsets": "1"}, "both say where to read"),
        ({"maxPartitionBytes": "0"}, "maxPartitionBytes"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss"),
        ({"requestTimeout": "0"}, "requestTimeout"),
        ({"token": "a", "managerSecretId": "b", "managerSecretKey": "c"}, "both authenticate at the hub"),
        ({"token": "line\nfeed"}, "an HTTP header cannot hold"),
        ({"path": "/data"}, "the read was given the path '/data'"),
    ],
)
def test_bad_options(hub, options, words):
    with pytest.raises(ConfigError) as caught:
        plan(hub, **options)
    assert words in str(caught.value)
    assert "user:word" not in str(caught.value)


def test_names_have_no_case_and_may_have_the_prefix(hub):
    send(hub, 2)
    loud = {"TARGET": hub.manager_url, "dataproxy.group_id": "g", "STARTINGOFFSETS": "1"}
    assert bodies(plan_read(loud)) == [1]
    with pytest.raises(ConfigError, match="two options set groupId"):
        plan_read({**loud, "groupid": "h"})


def test_a_token_is_in_no_text(hub):
    for text in (repr(plan(hub, token="hush")), repr(plan(hub, token="hush").ranges)):
        assert "hush" not in text
    with pytest.raises(DataProxyError) as caught:
        plan("http://127.0.0.1:1", token="hush")
    assert "hush" not in str(caught.value)


def shaped(entries, rows_each):
    """Return the rows of entries whose batches have so many rows, as slices of larger ones."""
    rows, shape = ArrowRows(), Shape(READ_SCHEMA, READ_SCHEMA, "a read")
    for entry in entries:
        list(rows.add(entry, 1 << 20))
    return [row for batch in rows.take(rows_each) for row in shape.batch(record_columns(batch)).to_pylist()]


@pytest.mark.parametrize("rows_each", [1, 3, 100])
def test_attributes_and_ids_are_those_of_the_record(rows_each):
    """Also where a batch is a slice of another, and where there are none."""
    pairs = [(b"%d" % n, {"own": str(n % 3), **({"msgid": f"id{n}"} if n % 2 else {})}) for n in range(10)]
    entries = [
        StoredEntry("g", 0, 0, 7, 8, "s", "", message.encode(3, [({"streamId": "s", "sid": "pack"}, pairs)])),
        StoredEntry("g", 0, 1, 7, 8, "s", "", message.encode(1, [({"streamId": "s"}, [b"10", b"11"])])),
        StoredEntry("g", 0, 2, 7, 8, "s", "", message.encode(1, [({"streamId": "s", "sid": "", "k": ""}, [b"12"])])),
    ]
    found = shaped(entries, rows_each)
    assert [int(row["value"]) for row in found] == list(range(13))
    own = [dict(row["attrs"]) for row in found]
    assert own == [{"own": str(n % 3)} for n in range(10)] + [{}, {}, {"k": ""}]
    assert not RESERVED_ATTRS.intersection(*own)
    assert [row["msg_id"] for row in found] == [f"id{n}" if n % 2 else f"pack.{n}" for n in range(10)] + [None] * 3
    assert {(row["dt"].timestamp(), row["receive_time"].timestamp()) for row in found} == {(0.008, 0.007)}
