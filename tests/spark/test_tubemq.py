"""Topics of TubeMQ in Spark: batches, streams that are stopped and killed, tasks that run twice, what is refused."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException

from dataproxy._core.wire.inlong import message as inlong
from dataproxy.spark.tubemq import stream as source_stream
from pyspark_tubemq import DefaultSource
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

COUNT = 300
INDEX = 28
limits = pytest.mark.skipif(not source_stream.HAS_LIMITS, reason="Spark before 4.2 tells a source no limits")


@pytest.fixture(autouse=True)
def by_value():
    """Send what this module defines to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def server():
    """A broker that forgets no reader by itself, however slow the machine is."""
    with TubeServer({"one": 1, "three": 3}, pack_bytes=2000, lock_limit_s=3600) as running:
        yield running


@pytest.fixture
def fill(server):
    """Return a function that stores messages in both topics, and gives the bodies of all."""
    bodies = []

    def fill(count=COUNT):
        for _ in range(count):
            body = b"%d" % len(bodies)
            topic = "one" if len(bodies) % 4 == 0 else "three"
            server.put(
                topic, body, len(bodies) % 3 if topic == "three" else 0, "$msgType$=t,$msgTime$=202402291234,k=v"
            )
            bodies.append(body)
        return bodies

    return fill


def given(server, **options):
    return {"target": server.target, "group": "g", "topics": "one,three", **options}


def load(spark, server, source="tubemq", **options):
    return spark.read.format(source).options(**given(server, **options)).load()


def found(df):
    return Counter(bytes(row.body) for row in df.select("body").collect())


def refused(df):
    with pytest.raises(AnalysisException) as caught:
        df.collect()
    return str(caught.value)


# --- batches


def test_a_batch(spark, server, fill):
    bodies = fill()
    df = load(spark, server)
    assert df.rdd.getNumPartitions() == 4
    assert found(df) == Counter(bodies)
    row = df.where("cast(body as string) = '4'").collect()[0]
    assert (row.topic, row.partition, row["index"], row.pack_offset, row.offset) == ("one", "1:one:0", 1, 0, 28)
    assert row.attributes == {"$msgType$": "t", "$msgTime$": "202402291234", "k": "v"}
    assert str(row.time) == "2024-02-29 12:34:00"
    assert df.where("topic = 'three' and offset is not null").count() == 0
    assert df.select("partition", "id").distinct().count() == COUNT


def test_a_batch_in_more_partitions_and_some_columns(spark, server, fill):
    bodies = fill()
    reader = spark.read.format("tubemq").options(**given(server, minPartitions="7")).schema("offset long, body binary")
    df = reader.load()
    assert df.rdd.getNumPartitions() == 7
    assert df.columns == ["offset", "body"]
    assert found(df) == Counter(bodies)


def test_records_of_containers_go_on_to_the_sink(spark, server, sink):
    for n in range(20):
        attrs = {"groupId": "g", "streamId": sink.stream, "dt": str(1_700_000_000_000 + n), "msgid": f"id-{n}"}
        server.put("one", inlong.encode(1, [(attrs, [b"%d" % n])]))
    df = load(spark, server, topics="one", records="inlong")
    sink.write(df.select("stream_id", "dt", "msg_id", "body"), without=("streamId",))
    assert sorted((record.body, record.message_id) for record in sink.records()) == sorted(
        (b"%d" % n, f"id-{n}") for n in range(20)
    )
    server.put("one", b"no container")
    with pytest.raises(PythonException, match="message 4 of the pack at 448 of 1:one:0 is no container"):
        load(spark, server, topics="one", records="inlong").collect()
    assert load(spark, server, topics="one", records="inlong", malformed="skip").count() == 20


def test_bad_input_is_told_on_the_driver(spark, server, fill):
    fill(4)
    assert "does not know topics none" in refused(load(spark, server, topics="one,none"))
    assert "there is no group" in refused(load(spark, server, group=""))
    assert "names the partitions 1:one:9" in refused(load(spark, server, startingOffsets='{"1:one:9": 0}'))
    assert "[OFFSETS_LOST]" in refused(load(spark, server, startingOffsets='{"1:one:0": 2800}'))
    assert "no master of tubemq://127.0.0.1:1" in refused(load(spark, server, target="tubemq://127.0.0.1:1"))
    with pytest.raises(AnalysisException, match="did you mean 'startingOffsets'"):
        load(spark, server, startOffsets="latest")
    with pytest.raises(AnalysisException, match="the source has no column 'value'"):
        spark.read.format("tubemq").options(**given(server)).schema("value binary").load().collect()


def test_a_limit_reads_no_further_and_gives_the_partition_back(spark, server, fill):
    fill()
    assert len(load(spark, server).limit(3).collect()) == 3
    assert eventually(lambda: not any(server.owner("g-read-0", "three", n) for n in range(3)))


# --- tasks that fail


class FailingReader:
    """Hands on what a reader gives; the first attempt of each task ends in the middle, in one way or another."""

    def __init__(self, reader, way):
        self.reader, self.way = reader, way

    def partitions(self):
        return self.reader.partitions()

    def read(self, partition):
        with mock.patch("dataproxy.spark.tubemq.ranges.joined", iter):  # each pack is a batch
            for number, batch in enumerate(self.reader.read(partition)):
                if number == 1 and TaskContext.get().attemptNumber() == 0:
                    if self.way == "killed":
                        os.kill(os.getpid(), signal.SIGKILL)
                    raise RuntimeError("lost on purpose")
                yield batch


class FailingSource(DefaultSource):
    @classmethod
    def name(cls):
        return "tubemq_failing"

    def reader(self, schema):
        from pyspark.sql.datasource import DataSourceReader

        way = self.options.pop("way")
        kind = type("Failing", (FailingReader, DataSourceReader), {})
        return kind(super().reader(schema), way)


@pytest.mark.parametrize("way", ["raised", "killed"])
def test_a_task_that_is_run_again_has_the_same_rows(spark, server, fill, way):
    """An attempt that was killed keeps its name at the broker: the next one takes another."""
    bodies = fill()
    spark.dataSource.register(FailingSource)
    schema = DefaultSource(given(server)).schema()
    df = spark.read.format("tubemq_failing").schema(schema).options(**given(server, way=way)).load()
    assert found(df) == Counter(bodies)

    def owners(number):
        return [server.owner(f"g-read-{number}", "three", n) for n in range(3)]

    if way == "killed":
        assert all(owners(0))
        assert not any(owners(1))
    else:  # Spark runs the next attempt while the one that failed still gives its partition back
        assert eventually(lambda: not any(owners(0) + owners(1)))


# --- streams


class Run:
    """Runs of one query, with its checkpoint, that keep what they get."""

    def __init__(self, spark, server, folder):
        self.spark, self.server, self.folder = spark, server, folder
        self.batches = {}

    def start(self, *, once=True, **options):
        """Start the query; ``once``: until it has what is there now."""
        df = self.spark.readStream.format("tubemq").options(**given(self.server, groupWait="1s", **options)).load()
        writer = df.writeStream.foreachBatch(self.keep).option("checkpointLocation", str(self.folder))
        return (writer.trigger(availableNow=True) if once else writer).start()

    def keep(self, df, number):
        """Keep the bodies of a batch; of one that comes again they are the same."""
        bodies = found(df)
        assert self.batches.setdefault(number, bodies) == bodies

    def run(self, **options):
        """Run the query until it has what is there now."""
        self.start(**options).awaitTermination(250)

    @property
    def found(self):
        return sum(self.batches.values(), Counter())


@pytest.fixture
def query(spark, server, tmp_path):
    return Run(spark, server, tmp_path / "checkpoint")


@limits
def test_a_stream_goes_on_from_its_checkpoint(query, server, fill):
    fill()
    query.run(startingOffsets="earliest", maxOffsetsPerTrigger="200")
    assert len(query.batches) > 2
    fill(50)
    query.run()
    bodies = fill(1)
    query.run()
    assert query.found == Counter(bodies)
    assert eventually(lambda: server.owner("g", "one", 0) is None)


def test_the_stored_offset_is_a_batch_behind(query, server, fill):
    fill(40)
    running = query.start(once=False, startingOffsets="earliest")
    try:
        assert eventually(lambda: sum(query.found.values()) == 40)
        before = server.end("one")
        fill(40)
        assert eventually(lambda: sum(query.found.values()) == 80)
        assert eventually(lambda: (server.confirmed("g", "one", 0) or 0) >= before)
        running.processAllAvailable()
        assert running.lastProgress["sources"][0]["latestOffset"]
    finally:
        running.stop()
    assert query.found == Counter(fill(0))


def test_a_second_query_with_the_group_is_refused(spark, query, server, fill, tmp_path):
    fill(20)
    running = query.start(once=False, startingOffsets="earliest")
    try:
        assert eventually(lambda: sum(query.found.values()) == 20)
        with pytest.raises(StreamingQueryException, match="group 'g' is in use"):
            Run(spark, server, tmp_path / "other").run()
        bodies = fill(20)
        assert eventually(lambda: sum(query.found.values()) == 40)
    finally:
        running.stop()
    assert query.found == Counter(bodies)


def test_messages_that_are_gone(query, server, fill):
    fill(100)
    query.run(startingOffsets="earliest")
    fill(100)
    server.trim("one", server.end("one"))
    with pytest.raises(StreamingQueryException, match="of partition 1:one:0 of topic 'one' are not all there"):
        query.run()
    query.batches.clear()
    query.run(failOnDataLoss="false")
    assert query.found == Counter(body for n, body in enumerate(fill(0)) if n >= 100 and n % 4)


DRIVER = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession

target, folder = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
spark.sparkContext.setLogLevel("OFF")


def keep(df, number):
    rows = sorted(row.body.decode() for row in df.select("body").collect())
    place = Path(folder, f"batch-{number}")
    if place.exists():
        assert place.read_text().split() == rows, number
    place.write_text(" ".join(rows))
    if number == 2 and not Path(folder, "killed").exists():
        Path(folder, "killed").touch()
        print("kill", flush=True)
        sys.stdin.read()        # until it is killed, with the batch not committed


df = spark.readStream.format("tubemq").options(target=target, group="g", topics="one,three", groupWait="1s",
    startingOffsets="earliest", maxOffsetsPerTrigger=200).load()
query = (df.writeStream.foreachBatch(keep).option("checkpointLocation", folder + "/checkpoint")
    .trigger(availableNow=True).start())
query.awaitTermination()
"""


@limits
def test_a_driver_that_is_killed(worker_environment, server, fill, tmp_path):
    """Its batch comes again as it was, and its group is not waited for."""
    bodies = fill()
    command = [sys.executable, "-c", DRIVER, server.target, str(tmp_path)]
    env = {**os.environ, **worker_environment}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=env, text=True, start_new_session=True, **pipes) as process:
        assert process.stdout.readline() == "kill\n"
        os.killpg(process.pid, signal.SIGKILL)
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, check=True, capture_output=True, timeout=250)
    assert done.returncode == 0
    batches = sorted(Path(tmp_path).glob("batch-*"))
    assert len(batches) > 3
    assert Counter(" ".join(batch.read_text() for batch in batches).split()) == Counter(
        body.decode() for body in bodies
    )
