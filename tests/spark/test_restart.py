"""Streams and jobs that die at every stage: behind the hub's filter the set of rows is the source's."""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.errors import StreamingQueryException

from dataproxy import Producer
from dataproxy.hub import Hub
from dataproxy.spark.stream import DataProxyStreamWriter, plan_stream_writer
from pyspark_dataproxy import DefaultSource

ROWS = 600
MANY = 2000  # 2 kB each: of both partitions whole blocks get through the pipes while the last rows are held
ATTEMPTS = 3  # of a task in the session of these tests
STAGES = ["planned", "mid-write", "written", "committing", "committed"]


@pytest.fixture(autouse=True)
def by_value():
    """Send what this module defines to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def die(folder, stage, last=True):
    """End this process without notice if the folder says that this stage's time has come; at last, once."""
    wanted = Path(folder, stage)
    if wanted.exists():
        if last:
            wanted.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class DyingWriter(DataProxyStreamWriter):
    def __init__(self, plan, folder):
        super().__init__(plan)
        self.folder = folder

    def write(self, iterator):
        last = TaskContext.get().attemptNumber() == ATTEMPTS - 1

        def half(batches):
            for number, batch in enumerate(batches):
                if number == 5:
                    die(self.folder, "mid-write", last)
                yield batch

        report = super().write(half(iterator))
        die(self.folder, "written", last)
        return report

    def commit(self, messages, batchId):
        die(self.folder, "committing")
        super().commit(messages, batchId)
        die(self.folder, "committed")


class DyingSource(DefaultSource):
    @classmethod
    def name(cls):
        return "dataproxy_dying"

    def streamWriter(self, schema, overwrite):
        folder = self.options.pop("folder")
        die(folder, "planned")
        return DyingWriter(plan_stream_writer(self.options, schema, overwrite)._plan, folder)


@pytest.fixture
def small_batches(spark):
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(key, "50")
    yield
    spark.conf.unset(key)


@pytest.fixture(scope="module")
def filtering():
    """Return a hub that stores a message once."""
    with Hub(dedupe="ids") as running:
        yield running


@pytest.mark.usefixtures("small_batches")
def test_a_micro_batch_goes_on_after_its_processes_died_at_every_stage(spark, filtering, stream, tmp_path):
    spark.dataSource.register(DyingSource)
    lines, flags, report = tmp_path / "lines", tmp_path / "flags", tmp_path / "report"
    lines.mkdir()
    flags.mkdir()
    read = spark.readStream.option("maxFilesPerTrigger", 1).text(str(lines))
    options = {"target": filtering.target, "groupId": "g", "streamId": stream, "reportFile": str(report)}
    options |= {"folder": str(flags), "checkpointLocation": str(tmp_path / "checkpoint")}

    def run():
        query = read.writeStream.format("dataproxy_dying").options(**options).trigger(availableNow=True).start()
        query.awaitTermination(250)

    (lines / "0.txt").write_text("".join(f"row-{row}\n" for row in range(ROWS)))
    for stage in STAGES:
        (flags / stage).touch()
        with pytest.raises(StreamingQueryException):
            run()
        assert not (flags / stage).exists()
    (lines / "1.txt").write_text("last")
    run()
    wanted = [f"row-{row}".encode() for row in range(ROWS)] + [b"last"]
    assert Counter(record.body for record in filtering.records("g", stream)) == dict.fromkeys(wanted, 1)
    reports = [json.loads(line) for line in report.read_text().splitlines()]
    committed = [found["job"].rpartition(".")[2] for found in reports if found["outcome"] == "committed"]
    assert committed == ["0", "0", "1"]
    assert filtering.stats()["duplicates"] >= 3 * ROWS


def reversed_later(flag):
    """Hand on a partition's rows, later in the opposite order; the first attempt fails when rows have arrived."""

    def pieces(batches):
        first = TaskContext.get().attemptNumber() == 0
        rows = [batch.slice(row, 1) for batch in batches for row in range(batch.num_rows)]
        yield from rows if first else reversed(rows)
        while first and not Path(flag).exists():
            time.sleep(0.05)
        if first:
            raise RuntimeError("lost on purpose")

    return pieces


@pytest.fixture
def arrived(filtering, stream, tmp_path):
    """Return a file that appears when the hub has rows of the stream."""
    flag, done = tmp_path / "arrived", threading.Event()

    def watch():
        while not done.wait(0.05):
            if filtering.counts().get(("g", stream)):
                flag.touch()

    thread = threading.Thread(target=watch)
    thread.start()
    yield flag
    done.set()
    thread.join()


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("own_ids", [False, True])
def test_a_shuffle_without_a_sort_may_double_a_row_and_never_loses_one(spark, filtering, stream, arrived, own_ids):
    rows = spark.range(0, MANY, 1, 2).repartition(2, "id").selectExpr(
        "lpad(id, 2000, '0') as value", "concat('id-', id) as msg_id"
    )  # fmt: skip
    df = rows.mapInArrow(reversed_later(str(arrived)), rows.schema)
    options = {"target": filtering.target, "groupId": "g", "streamId": stream, "linger": "1ms"}
    before = filtering.stats()["duplicates"]
    (df if own_ids else df.drop("msg_id")).write.format("dataproxy").mode("append").options(**options).save()
    records = list(filtering.records("g", stream))
    found = Counter(record.body for record in records)
    assert set(found) == {f"{number:02000}".encode() for number in range(MANY)}
    assert len({record.message_id for record in records}) == len(records)  # so a reader's filter by id loses none too
    if own_ids:
        assert set(found.values()) == {1}
        assert filtering.stats()["duplicates"] > before
    else:
        assert set(found.values()) == {1, 2}  # rows of the first attempt had arrived, under other numbers


@pytest.mark.usefixtures("small_batches")
def test_python_workers_that_are_killed_cost_an_attempt(spark, filtering, stream, arrived):
    flag = str(arrived)

    def killed_once(batches):
        yield from batches
        while TaskContext.get().attemptNumber() == 0:
            if Path(flag).exists():
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.05)

    rows = spark.range(0, MANY, 1, 2).selectExpr("lpad(id, 2000, '0') as value")
    df = rows.mapInArrow(killed_once, "value string")
    options = {"target": filtering.target, "groupId": "g", "streamId": stream, "linger": "1ms"}
    before = filtering.stats()["duplicates"]
    df.write.format("dataproxy").mode("append").options(**options).save()
    found = Counter(record.body for record in filtering.records("g", stream))
    assert found == {f"{number:02000}".encode(): 1 for number in range(MANY)}
    assert filtering.stats()["duplicates"] > before  # rows of the first attempt had arrived, under the same ids


def test_of_a_msg_id_that_is_written_again_with_another_body_the_first_one_stays(spark, filtering, stream):
    options = {"target": filtering.target, "groupId": "g", "streamId": stream}
    before = filtering.stats()["conflicts"]
    for run in ("first", "second"):
        df = spark.range(0, 1000, 1, 2).selectExpr(f"concat(id, ' {run}') as value", "concat('id-', id) as msg_id")
        df.write.format("dataproxy").mode("append").options(**options).save()
    found = Counter(record.body for record in filtering.records("g", stream))
    assert found == {f"{number} first".encode(): 1 for number in range(1000)}
    assert filtering.stats()["conflicts"] == before + 1000


def test_a_row_whose_id_the_sink_made_of_columns_is_never_left_out_for_another(spark, filtering, stream, tmp_path):
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "0.txt").write_text("stream")
    options = {"target": filtering.target, "groupId": "g", "streamId": stream, "idFrom": "value"}
    spark.createDataFrame([("batch",)], "value string").write.format("dataproxy").mode("append").options(
        **options
    ).save()
    writer = spark.readStream.text(str(tmp_path / "lines")).writeStream.format("dataproxy").options(**options)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(250)
    made = {record.body: record.message_id for record in filtering.records("g", stream)}
    assert sorted(made) == [b"batch", b"stream"]
    with Producer(filtering.target, group_id="g") as producer:
        for body, name in made.items():
            producer.send(stream, body + b" with another body", message_id=name)
    found = sorted((record.body, record.message_id) for record in filtering.records("g", stream))
    assert found == sorted([*made.items(), *((body + b" with another body", name) for body, name in made.items())])
