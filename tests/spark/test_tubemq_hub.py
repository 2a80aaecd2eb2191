"""Topics of a hub in Spark: what Spark wrote through the sink, and what TubeMQ's producers sent."""

import sys
from collections import Counter

import pytest
from pyspark import cloudpickle

from dataproxy import Producer
from dataproxy.hub import Hub
from tests.support.waiting import SECONDS, eventually


@pytest.fixture(autouse=True)
def by_value():
    """Send what this module defines to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def hub(tmp_path):
    with Hub(tmp_path / "store", tubemq_port=0, partitions=3) as running:
        yield running


def load(spark, hub, topics, **options):
    given = {"target": hub.tubemq_target, "group": "g", "topics": topics, **options}
    return spark.read.format("tubemq").options(**given).load()


def test_messages_of_a_producer(spark, hub):
    with Producer(hub.tubemq_target) as producer:
        for i in range(300):
            producer.send_nowait("one", b"%d" % i, attrs={"$msgType$": "t", "k": "v"})
        assert producer.flush(SECONDS).delivered == 300
    df = load(spark, hub, "one")
    assert Counter(bytes(row.body) for row in df.select("body").collect()) == Counter(b"%d" % i for i in range(300))
    row = df.where("cast(body as string) = '4'").collect()[0]
    assert (row.topic, row.attributes) == ("one", {"$msgType$": "t", "k": "v"})


def test_from_spark_through_the_sink_back_into_spark(spark, hub):
    rows = spark.range(500).selectExpr("cast(cast(id as string) as binary) as body", "concat('id-', id) as msg_id")
    rows.write.format("dataproxy").mode("append").options(target=hub.target, groupId="flights", streamId="s").save()
    assert eventually(lambda: not hub._tubemq.layout.missing({"flights"}))
    df = load(spark, hub, "flights", records="inlong")
    assert {row.msg_id for row in df.select("msg_id").collect()} == {f"id-{i}" for i in range(500)}


def test_a_stream(spark, hub, tmp_path):
    with Producer(hub.tubemq_target) as producer:
        producer.stream("one").send_batch([b"%d" % i for i in range(50)]).result(SECONDS)
        given = {"target": hub.tubemq_target, "group": "g", "topics": "one", "startingOffsets": "earliest"}
        reader = spark.readStream.format("tubemq").options(**given).load()
        query = (
            reader.selectExpr("cast(body as string) as body")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "check"))
            .start()
        )
        try:
            query.processAllAvailable()
            producer.stream("one").send_batch([b"%d" % i for i in range(50, 80)]).result(SECONDS)
            query.processAllAvailable()
        finally:
            query.stop()
    found = sorted(int(row.body) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == list(range(80))
