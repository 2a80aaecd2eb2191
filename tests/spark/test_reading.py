"""Reading what a hub holds: every column, every range, one moment, and an error wherever something is missing."""

import http.server
import random
import threading
import urllib.request
from collections import Counter

import pytest
from pyspark.errors import AnalysisException

from dataproxy import Producer
from dataproxy.hub import Hub
from tests.loopback.hub.peer import wait_until


def load(spark, hub, *, columns=None, **options):
    """Return what a read of group g gives; options as strings, a None leaves one out."""
    given = {"target": hub.manager_url, "groupId": "g", **options}
    reader = spark.read.format("dataproxy").options(**{name: value for name, value in given.items() if value})
    return (reader.schema(columns) if columns else reader).load()


def write(df, hub, **options):
    given = {"target": hub.target, "groupId": "g", "streamId": "s", **options}
    given = {name: value for name, value in given.items() if value}
    df.write.format("dataproxy").mode("append").options(**given).save()


def numbers(spark, count, partitions=2):
    return spark.range(0, count, 1, partitions).selectExpr("cast(id as string) as value")


def bodies(df):
    return sorted(int(row.value) for row in df.select("value").collect())


def send(hub, count, stream="s", start=0, size=0):
    """Send one request for each body, and wait until it is stored."""
    with Producer(hub.target, group_id="g") as producer:
        for n in range(start, start + count):
            producer.send(stream, b"%d" % n if not size else random.Random(n).randbytes(size)).result(timeout=60)


@pytest.fixture
def own():
    """Return a hub of the test's own, with three logs for each group."""
    with Hub(partitions=3) as hub:
        yield hub


@pytest.fixture
def one_log():
    """Return a hub of the test's own, whose requests stand in one log."""
    with Hub() as hub:
        yield hub


def test_every_column_comes_back(spark, own):
    df = spark.sql("""
        select concat('body ', id) as value, concat('s', id % 9) as stream_id, concat('id-', id) as msg_id,
            timestamp '2024-02-29 12:34:56.789' + make_dt_interval(0, 0, 0, id) as dt,
            map('city', if(id = 1, 'Zürich & Köln=100%', 'Bonn'), 'n', cast(id as string)) as attrs
        from range(0, 1000, 1, 2)""")
    write(df, own, streamId=None, attributeEscape="percent")
    found = load(spark, own)
    columns = ["value", "stream_id", "msg_id", "dt", "attrs"]
    back = found.selectExpr("cast(value as string) as value", *columns[1:])
    assert {(r.value, r.stream_id, r.msg_id, r.dt, *sorted(r.attrs.items())) for r in back.collect()} == {
        (r.value, r.stream_id, r.msg_id, r.dt, *sorted(r.attrs.items())) for r in df.select(columns).collect()
    }
    rows = {(row.partition, row.offset, row["index"]): row for row in found.collect()}
    assert len(rows) == 1000
    for record in own.records("g"):
        row = rows[record.partition, record.offset, record.index]
        assert (row.group_id, row.stream_id, bytes(row.value)) == ("g", record.stream_id, record.body)
        assert (row.msg_id, row.source) == (record.message_id, record.source)
        assert round(row.receive_time.timestamp() * 1000) == record.receive_ms
    assert {place[0] for place in rows} == {0, 1, 2}


def values(df, column):
    return Counter(str(row[0]) for row in df.select(column).collect())


def test_what_was_read_can_be_written_again(spark, own):
    write(numbers(spark, 500), own)
    first = load(spark, own)
    columns = ("value", "dt", "attrs", "stream_id", "msg_id")
    write(first.select(*columns), own, groupId="copy", streamId=None)
    second = load(spark, own, groupId="copy")
    for column in columns[:-1]:
        assert values(second, column) == values(first, column)
    assert values(second, "msg_id") == Counter(f"{one}~" for one in values(first, "msg_id"))  # ids of their own now
    write(second.select(*columns), own, groupId="third", streamId=None)
    assert values(load(spark, own, groupId="third"), "msg_id") == values(second, "msg_id")


def test_ids_by_the_place_in_a_pack(spark, one_log):
    with Producer(one_log.target, group_id="g") as producer:
        producer.send_batch("s", [b"a", b"b", b"c"]).result(timeout=60)
    expected = [(record.body, record.message_id) for record in one_log.records("g")]
    assert [(bytes(r.value), r.msg_id) for r in load(spark, one_log).orderBy("index").collect()] == expected
    assert expected[2][1].endswith(".2")


def test_streams(spark, own):
    df = spark.range(0, 3000, 1, 2).selectExpr("cast(id as string) as value", "concat('s', id % 7) as stream_id")
    write(df, own, streamId=None)
    for number in range(7):
        assert bodies(load(spark, own, streamId=f"s{number}")) == list(range(number, 3000, 7))
    assert load(spark, own, streamId="none").count() == 0
    assert bodies(load(spark, own)) == list(range(3000))


def test_parts_cover_a_log_once(spark, one_log):
    send(one_log, 60)
    frame = load(spark, one_log, maxPartitionBytes="1KiB")
    assert 5 < frame.rdd.getNumPartitions() <= 60
    assert bodies(frame) == list(range(60))
    assert load(spark, one_log).rdd.getNumPartitions() == 1


def logs_of(hub):
    from dataproxy.hub import LogInfo

    return [LogInfo(*row) for row in hub._view().logs("g")]


def test_a_read_is_of_one_moment(spark, own):
    send(own, 30)
    frame = load(spark, own)
    assert frame.count() == 30
    stop = threading.Event()

    def go_on():
        n = 30
        with Producer(own.target, group_id="g") as producer:
            while not stop.is_set():
                producer.send("s", b"%d" % n).result(timeout=60)
                n += 1

    producing = threading.Thread(target=go_on)
    producing.start()
    try:
        wait_until(lambda: sum(log.records for log in logs_of(own)) > 60)
        for _ in range(3):
            assert bodies(frame) == list(range(30))
        assert frame.union(frame).count() == 60
        later = load(spark, own)
        first, second = bodies(later), bodies(later)
        assert first == second
        assert first == list(range(len(first)))
        assert len(first) > 60
    finally:
        stop.set()
        producing.join()


def test_a_durable_store_after_a_restart(spark, tmp_path):
    with Hub(tmp_path, manager_port=0) as hub:
        write(numbers(spark, 1000), hub)
        port = hub.manager_port
        frame = load(spark, hub)
        before = frame.orderBy("offset", "index").collect()
    with Hub(tmp_path, manager_port=port) as hub:
        assert frame.orderBy("offset", "index").collect() == before, "of the plan that was made before"
        assert load(spark, hub).orderBy("offset", "index").collect() == before


@pytest.fixture
def small():
    """Return a hub that keeps a megabyte."""
    with Hub(max_store_bytes=1 << 20) as hub:
        yield hub


def first_offset(hub):
    return logs_of(hub)[0].first_offset


@pytest.mark.parametrize("stream", ["", "s"])
def test_rows_that_were_dropped_are_an_error_with_their_offsets(spark, small, stream):
    send(small, 5, size=100_000)
    frame = load(spark, small, streamId=stream)
    left = load(spark, small, streamId=stream, failOnDataLoss="false")
    assert frame.count() == left.count() == 5
    send(small, 8, start=5, size=100_000)
    first = first_offset(small)
    assert 0 < first < 5
    with pytest.raises(Exception, match=rf"the offsets 0 to {first - 1} of partition 0 of group 'g' were dropped"):
        frame.count()
    assert sorted(row.offset for row in left.collect()) == list(range(first, 5))
    send(small, 20, start=13, size=100_000)
    with pytest.raises(Exception, match=r"the offsets 0 to 4 of partition 0 of group 'g' were dropped.*DATA_LOST"):
        frame.count()
    assert left.count() == 0


def test_large_records(spark):
    with Hub(max_frame_bytes=8 << 20) as hub:
        with Producer(hub.target, group_id="g", max_frame_bytes=8 << 20) as producer:
            sent = [random.Random(n).randbytes(4_000_000) for n in range(8)]
            for body in sent:
                producer.send("s", body).result(timeout=60)
        assert [bytes(row.value) for row in load(spark, hub).orderBy("offset").collect()] == sent


class Cutting(http.server.BaseHTTPRequestHandler):
    """Pass requests on to a hub; of the pages behind the first ``whole`` ones half is given."""

    hub_url, whole, cut_length = "", 0, True

    def do_GET(self):
        with urllib.request.urlopen(self.hub_url + self.path) as answer:
            body = answer.read()
        is_page = self.path.startswith("/hub/entries")
        type(self).whole -= is_page
        shown = body[: len(body) // 2] if is_page and self.whole < 0 else body
        self.send_response(200)
        if not self.cut_length or shown is body:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(shown)
        self.close_connection = True

    def log_message(self, *args):
        pass


@pytest.mark.parametrize("cut_length", [True, False])
def test_an_answer_that_is_cut_in_the_middle_is_no_half_result(spark, one_log, cut_length):
    """Several pages: the first ones are whole, and their rows are on their way when the next one breaks off."""
    send(one_log, 60, size=100_000)
    kind = type("OneCut", (Cutting,), {"hub_url": one_log.manager_url, "whole": 1, "cut_length": cut_length})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            target = f"http://127.0.0.1:{server.server_port}"
            with pytest.raises(Exception, match=r"TransportError|RemoteProtocolError"):
                load(spark, one_log, target=target).count()
            kind.whole = 1 << 30
            assert load(spark, one_log, target=target).count() == 60
        finally:
            server.shutdown()


def test_a_hub_that_dies_in_the_middle_is_an_error(spark):
    hub = Hub()
    try:
        send(hub, 60, size=100_000)
        frame = load(spark, hub)
        pages = []
        from dataproxy.hub.web import manager

        make = manager.entries_page

        def dying(*given):
            pages.append(given)
            if len(pages) > 1:
                hub._manager.connections.drop()
                raise ConnectionResetError
            return make(*given)

        manager.entries_page = dying
        try:
            with pytest.raises(Exception, match=r"TransportError: the hub at .* cannot be reached, or ended"):
                frame.count()
        finally:
            manager.entries_page = make
        assert len(pages) > 1
        assert frame.count() == 60
    finally:
        hub.close()
    with pytest.raises(Exception, match="TransportError"):
        frame.count()


def test_who_may_read(spark):
    with Hub(secret_id="me", secret_key="word") as hub:
        with Producer(hub.manager_url, group_id="g", manager_secret_id="me", manager_secret_key="word") as producer:
            producer.send("s", b"0").result(timeout=60)
        with pytest.raises(AnalysisException, match=r"HTTP 403.*set the option token") as caught:
            load(spark, hub)
        assert bodies(load(spark, hub, token=hub.token)) == [0]
        assert bodies(load(spark, hub, managerSecretId="me", managerSecretKey="word")) == [0]
        with pytest.raises(AnalysisException, match="keep one") as caught:
            load(spark, hub, token=hub.token, managerSecretId="me", managerSecretKey="word")
        assert hub.token not in str(caught.value)
        frame = load(spark, hub, token=hub.token)
        assert hub.token not in frame._jdf.queryExecution().toString()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stremId": "s"}, "no option 'stremid' of a read, did you mean 'streamId'"),
        ({"target": "tcp://127.0.0.1:1"}, "accepts messages but cannot be read"),
        ({"startingOffsets": "9"}, "ends at offset 1, but offset 9 was requested"),
    ],
)
def test_mistakes_are_told_by_load(spark, one_log, options, words):
    send(one_log, 1)
    with pytest.raises(AnalysisException) as caught:
        load(spark, one_log, **options)
    assert words in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_path_has_no_meaning(spark, hub):
    with pytest.raises(AnalysisException, match="the read was given the path '/data'"):
        spark.read.format("dataproxy").options(target=hub.manager_url, groupId="g").load("/data")


def test_some_columns_alone(spark, own):
    write(numbers(spark, 100), own)
    frame = load(spark, own, columns="OFFSET bigint, value binary not null")
    assert frame.columns == ["OFFSET", "value"]
    assert bodies(frame) == list(range(100))
    with pytest.raises(AnalysisException, match="a read has no column 'value' of type string"):
        load(spark, own, columns="value string").collect()
    with pytest.raises(AnalysisException, match="a read has no column 'body' of type binary"):
        load(spark, own, columns="body binary").collect()


def test_sql(spark, own):
    write(numbers(spark, 100), own)
    spark.sql(
        f"create or replace temporary view held using dataproxy options (target '{own.manager_url}', groupId 'g')"
    )
    assert spark.sql("select count(*), max(cast(cast(value as string) as int)) from held").first() == (100, 99)
    spark.sql("drop view held")


def test_streams_are_not_read(spark, own):
    send(own, 1)
    options = {"target": own.manager_url, "groupId": "g"}
    frame = spark.readStream.format("dataproxy").options(**options).load()
    query = frame.writeStream.format("noop").start()
    with pytest.raises(Exception, match="can be read in batches, and not by readStream"):
        query.processAllAvailable()


def test_the_session_s_zone_changes_no_moment(spark, own):
    write(spark.sql("select 'x' as value, timestamp '2024-06-01 12:00:00Z' as dt"), own)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        [row] = load(spark, own).selectExpr("cast(dt as string) as text", "unix_millis(dt) as ms").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (row.text, row.ms) == ("2024-06-01 21:00:00", 1717243200000)
