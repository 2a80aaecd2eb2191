"""The driver's part of a stream, and plans of batches, against a TubeMQ server in plain Python."""

import json
import pickle
import random
import socket
import threading

import pytest

from dataproxy.errors import ConfigError, GroupRefusedError, OffsetsLostError, RemoteProtocolError, TransportError
from dataproxy.spark.tubemq import stream
from dataproxy.spark.tubemq.columns import RAW_SCHEMA
from dataproxy.spark.tubemq.plan import plan_batch
from dataproxy.spark.tubemq.ranges import read_range, shape_of
from dataproxy.spark.tubemq.stream import TubeMQStream, stream_reader
from tests.support.tubeserver import TubeServer

INDEX = 28
COUNT = 120
END = COUNT * INDEX
limits = pytest.mark.skipif(not stream.HAS_LIMITS, reason="Spark before 4.2 tells a source no limits")


@pytest.fixture
def server():
    with TubeServer({"one": 1, "three": 3}, pack_bytes=1500) as running:
        yield running


@pytest.fixture
def fill(server):
    """Return a function that stores messages, and the bodies of each partition."""
    source, bodies = random.Random(5), {}

    def fill(count=COUNT, *topics):
        for topic in topics or ("one", "three"):
            for _ in range(count):
                partition = source.randrange(server.settings.topics[topic])
                body = source.randbytes(source.choice([8, 200]))
                bodies.setdefault(f"1:{topic}:{partition}", []).append((server.put(topic, body, partition), body))
        return bodies

    return fill


@pytest.fixture
def opened(server):
    """Return a function that opens the reader of a stream."""
    running = []

    def opened(kind=None, **options):
        given = {"target": server.target, "group": "g", "topics": "one,three", "groupWait": "0s", **options}
        made = stream_reader(given, RAW_SCHEMA)
        running.append(made if kind is None else kind(made._settings, RAW_SCHEMA))
        return running[-1]

    yield opened
    for reader in running:
        reader.stop()


def batch(server, **options):
    return plan_batch({"target": server.target, "group": "g", "topics": "one,three", **options})


def bodies_of(settings, ranges):
    shape = shape_of(settings, RAW_SCHEMA)
    found = {}
    for one in ranges:
        for rows in read_range(settings, shape, one):
            found.setdefault(one.place.key, []).extend(rows.column("body").to_pylist())
    return found


def between(stored, begin, end):
    """Return what partitions have between two dictionaries of offsets."""
    cut = {key: [body for at, body in stored[key] if begin.get(key, 0) <= at < end[key]] for key in end}
    return {key: found for key, found in cut.items() if found}


def read(reader, begin, end):
    return bodies_of(reader._settings, reader.partitions(begin, end))


# --- batches


def test_a_batch_has_everything_and_leaves_the_group_alone(server, fill):
    stored = fill()
    plan = batch(server)
    fill(20)
    assert bodies_of(plan.settings, plan.ranges) == between(stored, {}, dict.fromkeys(stored, END))
    assert server.confirmed("g", "one", 0) is None
    assert {call.method for call in server.calls} & {"RegisterRequestC2M"} == set()


def test_plans_travel(server, fill):
    stored = fill()
    plan = pickle.loads(pickle.dumps(batch(server)))
    assert bodies_of(plan.settings, plan.ranges) == between(stored, {}, dict.fromkeys(stored, END))


def test_more_partitions_of_a_data_frame_have_the_same_rows(server, fill):
    stored = fill()
    plan = batch(server, minPartitions="9")
    assert len(plan.ranges) == 9
    assert bodies_of(plan.settings, plan.ranges) == between(stored, {}, dict.fromkeys(stored, END))


def test_a_batch_between_offsets(server, fill):
    stored = fill()
    begin, end = {"1:one:0": 10 * INDEX, "1:three:1": END}, {"1:one:0": 11 * INDEX, "1:three:2": 60 * INDEX}
    plan = batch(server, startingOffsets=json.dumps(begin), endingOffsets=json.dumps(end))
    whole = dict.fromkeys(stored, END) | end
    assert bodies_of(plan.settings, plan.ranges) == between(stored, begin, whole)


def test_a_batch_from_the_stored_offsets_on(server, fill, opened):
    stored = fill()
    query = opened()
    query.initialOffset()
    query.commit({"1:one:0": 30 * INDEX, "1:three:1": 50 * INDEX})
    with pytest.raises(GroupRefusedError, match="group 'g' is in use"):
        batch(server, startingOffsets="stored", groupWait="0s")
    query.stop()
    plan = batch(server, startingOffsets="stored")
    begin = {"1:one:0": 30 * INDEX, "1:three:1": 50 * INDEX}
    assert bodies_of(plan.settings, plan.ranges) == between(stored, begin, dict.fromkeys(stored, END))
    assert server.owner("g", "one", 0) is None


def test_an_empty_topic(server):
    assert batch(server).ranges == ()


def test_what_is_gone_is_told_before_a_task_runs(server, fill, caplog):
    stored = fill()
    server.trim("three", 50 * INDEX)
    wanted = json.dumps({"1:three:1": 20 * INDEX})
    with pytest.raises(OffsetsLostError, match="offsets 560 to 3360 of partition 1:three:1 of topic 'three'") as caught:
        batch(server, startingOffsets=wanted)
    assert caught.value.code == "OFFSETS_LOST"
    assert dict(caught.value.details) == {
        "topic": "three", "partition": "1:three:1", "begin": 560, "end": END, "store_begin": 1400, "store_end": END,
    }  # fmt: skip
    plan = batch(server, startingOffsets=wanted, failOnDataLoss="false")
    begin = {key: 50 * INDEX for key in stored if "three" in key}
    assert bodies_of(plan.settings, plan.ranges) == between(stored, begin, dict.fromkeys(stored, END))
    assert "failOnDataLoss=false: 840 bytes of offsets are passed over" in caplog.text
    with pytest.raises(OffsetsLostError):
        batch(server, endingOffsets=json.dumps({"1:one:0": END + INDEX}))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"topics": "one,none"}, "does not know topics none"),
        ({"startingOffsets": '{"1:one:1": 0}'}, "names the partitions 1:one:1, and the topics have 1:one:0"),
        ({"startingOffsets": '{"1:one:0": 56}', "endingOffsets": '{"1:one:0": 28}'}, "the start is after the end"),
        ({"startingOffsets": "latest", "endingOffsets": "stored"}, "the start is after the end"),
    ],
)
def test_bad_plans(server, fill, options, told):
    fill(5)
    with pytest.raises(ConfigError, match=told):
        batch(server, **options)


def test_a_master_that_is_none(server):
    with socket.create_server(("127.0.0.1", 0)) as web:

        def answer():
            peer, _ = web.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        target = f"tubemq://127.0.0.1:{web.getsockname()[1]}"
        with pytest.raises(RemoteProtocolError, match="its answer begins with"):
            batch(server, target=target)
        thread.join()
    with pytest.raises(TransportError, match="no master of") as caught:
        batch(server, target=target)
    assert caught.value.code == "NO_MASTER"


# --- streams


@limits
def test_a_stream_from_the_beginning_in_small_batches(server, fill, opened):
    stored = fill()
    reader = opened(startingOffsets="earliest", maxOffsetsPerTrigger="77")
    at, steps = reader.initialOffset(), []
    assert at == dict.fromkeys(stored, 0) == reader.initialOffset()
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        steps.append((at, end))
        at = end
    assert at == dict.fromkeys(stored, END)
    assert len(steps) == -(-4 * COUNT // 77)
    for begin, end in steps:
        expected = between(stored, begin, end)
        assert read(reader, begin, end) == expected
        assert read(reader, begin, end) == expected
    assert reader.reportLatestOffset() == at


@limits
def test_a_stream_begins_at_the_newest_message(server, fill, opened):
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    stored = fill()
    reader = opened()
    begin = reader.initialOffset()
    assert begin == dict.fromkeys(stored, END)
    assert list(begin) == sorted(begin)  # offsets are compared as texts of JSON
    fill(9)
    end = reader.latestOffset(begin, ReadAllAvailable())
    assert end == dict.fromkeys(stored, END + 9 * INDEX)
    assert read(reader, begin, end) == between(stored, begin, end)
    assert json.dumps(reader.latestOffset(end, ReadAllAvailable())) == json.dumps(end)


@limits
def test_available_now_ends_where_the_topics_ended(server, fill, opened):
    stored = fill()
    reader = opened(startingOffsets="earliest", maxOffsetsPerTrigger="100")
    reader.prepareForTriggerAvailableNow()
    at = reader.initialOffset()
    fill(50)
    for _ in range(30):
        at = reader.latestOffset(at, reader.getDefaultReadLimit())
    assert at == dict.fromkeys(stored, END)


def test_a_stream_of_an_older_spark(server, fill, opened):
    stored = fill()
    reader = opened(TubeMQStream, startingOffsets="earliest")
    begin = reader.initialOffset()
    end = reader.latestOffset()
    assert read(reader, begin, end) == between(stored, begin, end)
    assert end == dict.fromkeys(stored, END)


def test_limits_need_a_newer_spark(opened, monkeypatch):
    monkeypatch.setattr(stream, "HAS_LIMITS", False)
    with pytest.raises(ConfigError, match="maxOffsetsPerTrigger needs Spark"):
        opened(maxOffsetsPerTrigger="5")


def test_the_stored_offsets_follow(server, fill, opened):
    fill()
    reader = opened()
    reader.initialOffset()
    reader.commit({"1:one:0": 20 * INDEX, "1:three:2": 10 * INDEX})
    assert server.confirmed("g", "one", 0) == 20 * INDEX
    assert server.confirmed("g", "three", 2) == 10 * INDEX
    calls = len(server.calls)
    reader.commit({"1:one:0": 20 * INDEX, "1:three:2": 10 * INDEX})
    assert len(server.calls) == calls
    server.stop_broker()
    reader.commit({"1:one:0": 21 * INDEX})  # is logged
    server.start_broker()
    reader.commit({"1:one:0": 21 * INDEX})
    assert server.confirmed("g", "one", 0) == 21 * INDEX


def test_a_second_query_with_the_group_is_refused_wherever_it_begins(fill, opened):
    fill()
    first = opened()
    begin = first.initialOffset()
    for call in ("initialOffset", "latestOffset"):
        with pytest.raises(GroupRefusedError, match="group 'g' is in use"):
            getattr(opened(TubeMQStream), call)()
    with pytest.raises(GroupRefusedError, match="group 'g' is in use"):  # a batch that is run again after a restart
        opened().partitions(begin, begin)
    first.stop()
    opened().initialOffset()


def test_copies_in_tasks_know_nothing_of_the_driver(fill, opened):
    stored = fill()
    reader = opened(TubeMQStream, startingOffsets="earliest")
    begin, end = reader.initialOffset(), reader.latestOffset()
    copy = pickle.loads(pickle.dumps(reader))
    ranges = pickle.loads(pickle.dumps(reader.partitions(begin, end)))
    assert copy._following is None
    found = [row for one in ranges for rows in copy.read(one) for row in rows.column("body").to_pylist()]
    assert sorted(found) == sorted(body for part in stored.values() for _, body in part)


@limits
def test_new_partitions_are_read_from_their_oldest_message(server, fill, opened):
    from pyspark.sql.streaming.datasource import ReadMaxRows

    stored = fill()
    reader = opened(topics="one", startingOffsets="earliest")
    begin = reader.latestOffset(reader.initialOffset(), ReadMaxRows(10**9))
    reader.stop()
    server.trim("three", 30 * INDEX)
    later = opened(startingOffsets="latest", maxOffsetsPerTrigger="1")
    step = later.latestOffset(begin, ReadMaxRows(60))
    assert {key: offset - 30 * INDEX for key, offset in step.items() if "three" in key} == dict.fromkeys(
        ("1:three:0", "1:three:1", "1:three:2"), 20 * INDEX
    )
    first = dict.fromkeys(stored, 30 * INDEX) | begin
    assert read(later, begin, step) == between(stored, first, step)


def nothing(answer):
    del answer.topicInfos[:]


def test_partitions_are_listed_again(server, fill, opened, caplog):
    fill()
    reader = opened(TubeMQStream, listingInterval="0s")
    reader.initialOffset()
    listed = [call.method for call in server.calls].count("HeartRequestP2M")
    reader.latestOffset()
    assert [call.method for call in server.calls].count("HeartRequestP2M") == listed + 1
    server.stop_master()
    assert reader.latestOffset() == reader.initialOffset()
    assert "no new partitions are looked for: no master of" in caplog.text
    server.start_master()
    server.on("HeartRequestP2M", ("mangle", nothing))
    assert reader.latestOffset() == reader.initialOffset()
    assert "no new partitions are looked for: master 127.0.0.1" in caplog.text


@limits
def test_partitions_that_no_master_tells(fill, opened, caplog):
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    fill()
    reader = opened()
    begin = {**reader.initialOffset(), "9:gone:0": 280}
    assert reader.latestOffset(begin, ReadAllAvailable())["9:gone:0"] == 280
    assert reader.partitions(begin, begin) == []
    with pytest.raises(TransportError, match="the offsets 280 to 560 of 9:gone:0, which no master tells"):
        reader.partitions(begin, {**begin, "9:gone:0": 560})
    reader.stop()
    assert opened(failOnDataLoss="false").partitions(begin, {**begin, "9:gone:0": 560}) == []


@limits
def test_a_store_that_was_emptied(server, fill, opened, caplog):
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    fill(5)
    begin = dict.fromkeys(("1:one:0", "1:three:0", "1:three:1", "1:three:2"), 5 * INDEX) | {"1:one:0": 9 * INDEX}
    reader = opened()
    with pytest.raises(OffsetsLostError, match="of partition 1:one:0"):
        reader.latestOffset(begin, ReadAllAvailable())
    reader.stop()
    tolerant = opened(failOnDataLoss="false")
    end = tolerant.latestOffset(begin, ReadAllAvailable())
    assert end["1:one:0"] == 5 * INDEX
    assert tolerant.partitions(begin, end) == []


@pytest.mark.parametrize("fail", [True, False])
def test_messages_that_are_gone_when_a_task_reads(server, fill, opened, fail, caplog):
    stored = fill()
    reader = opened(TubeMQStream, startingOffsets="earliest", failOnDataLoss=str(fail).lower())
    begin, end = reader.initialOffset(), reader.latestOffset()
    server.trim("one", 100 * INDEX)
    if fail:
        with pytest.raises(OffsetsLostError, match="of partition 1:one:0"):
            read(reader, begin, end)
        return
    assert read(reader, begin, end) == between(stored, begin | {"1:one:0": 100 * INDEX}, end)
    assert "the offsets 0 to 3360 of partition 1:one:0 of topic 'one' are not all there" in caplog.text


def test_offsets_to_begin_with(server, fill, opened, caplog):
    fill()
    start = {"1:one:0": 28, "1:three:0": "earliest", "1:three:1": "stored"}
    found = opened(startingOffsets=json.dumps(start)).initialOffset()
    assert found == {"1:one:0": 28, "1:three:0": 0, "1:three:1": 0, "1:three:2": END}
    with pytest.raises(ConfigError, match="names the partitions 1:none:0"):
        opened(group="h", startingOffsets='{"1:none:0": 0}').initialOffset()
    server.trim("one", 56)
    for offset, there in ((28, 56), (END + INDEX, END)):
        beyond = json.dumps({"1:one:0": offset})
        with pytest.raises(OffsetsLostError):
            opened(group=f"strict{offset}", startingOffsets=beyond).initialOffset()
        tolerant = opened(group=f"tolerant{offset}", startingOffsets=beyond, failOnDataLoss="false")
        assert tolerant.initialOffset()["1:one:0"] == there
