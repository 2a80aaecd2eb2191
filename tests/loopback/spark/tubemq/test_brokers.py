"""A topic at two brokers: read as one, and one of them goes away and comes back."""

import json

import pytest

from dataproxy.errors import TransportError
from dataproxy.spark.tubemq import stream
from dataproxy.spark.tubemq.columns import RAW_SCHEMA
from dataproxy.spark.tubemq.plan import plan_batch
from dataproxy.spark.tubemq.ranges import read_range, shape_of
from dataproxy.spark.tubemq.stream import stream_reader
from tests.support.tubeserver import TubeServer

INDEX = 28
KEYS = ("1:one:0", "2:one:0")


@pytest.fixture
def servers():
    """Return two servers; the first one's master tells the brokers of both."""
    with TubeServer({"one": 1}) as first, TubeServer({"one": 1}, broker_id=2) as second:

        def tell_both(answer):
            answer.brokerInfos.append(f"2:127.0.0.1:{second.broker_port}")
            if "topicInfos" in answer.DESCRIPTOR.fields_by_name:
                answer.topicInfos[:] = ["one#1:1:1,2:1:1"]

        for method in ("RegisterRequestP2M", "HeartRequestP2M"):
            first.on(method, ("mangle", tell_both), times=None)
        yield first, second


def bodies(settings, ranges):
    shape = shape_of(settings, RAW_SCHEMA)
    return [body for one in ranges for rows in read_range(settings, shape, one) for body in rows["body"].to_pylist()]


def given(servers, **options):
    return {"target": servers[0].target, "group": "g", "topics": "one", "callTimeout": "3s", **options}


def put(servers, *texts):
    for server, text in zip(servers, texts, strict=True):
        server.put("one", text)


def test_a_batch_of_both(servers):
    put(servers, b"a", b"b")
    plan = plan_batch(given(servers))
    assert bodies(plan.settings, plan.ranges) == [b"a", b"b"]
    servers[1].stop_broker()
    with pytest.raises(TransportError, match="no connection"):
        plan_batch(given(servers))


@pytest.mark.skipif(not stream.HAS_LIMITS, reason="Spark before 4.2 does not tell a source where a batch begins")
def test_a_stream_goes_on_without_a_broker_and_with_it_again(servers, caplog):
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    put(servers, b"a", b"b")
    reader = stream_reader(given(servers, startingOffsets="earliest"), RAW_SCHEMA)
    try:
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, ReadAllAvailable())
        assert (begin, end) == (dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, INDEX))
        assert bodies(reader._settings, reader.partitions(begin, end)) == [b"a", b"b"]
        put(servers, b"c", b"d")
        servers[1].stop_broker()
        without = reader.latestOffset(end, ReadAllAvailable())
        assert without == {"1:one:0": 2 * INDEX, "2:one:0": INDEX}
        assert bodies(reader._settings, reader.partitions(end, without)) == [b"c"]
        reader.latestOffset(without, ReadAllAvailable())
        assert caplog.text.count("partitions of a broker are left out for now") == 1
        reader.commit(end)
        assert servers[0].confirmed("g", "one", 0) == INDEX
        servers[1].start_broker()
        both = without
        while both == without:
            both = reader.latestOffset(without, ReadAllAvailable())
        assert both == dict.fromkeys(KEYS, 2 * INDEX)
        assert json.dumps(both) == json.dumps(dict(sorted(both.items())))
        assert bodies(reader._settings, reader.partitions(without, both)) == [b"d"]
    finally:
        reader.stop()


def test_a_new_query_waits_for_no_broker(servers):
    """It could not say where the partitions of that broker begin."""
    servers[1].stop_broker()
    reader = stream_reader(given(servers), RAW_SCHEMA)
    with pytest.raises(TransportError, match="partitions 2:one:0 cannot be asked where they begin") as caught:
        reader.initialOffset()
    assert caught.value.code == "NO_BROKER"
    reader.stop()
