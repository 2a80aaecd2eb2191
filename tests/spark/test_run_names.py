"""A write that its user has named can be done again: behind a hub that knows ids each row is there once."""

import pytest
from pyspark.errors import PySparkException

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.spark import check, writer

ROWS = 3000


@pytest.fixture(scope="module")
def knowing():
    """Return a hub that stores an id once."""
    with Hub(dedupe="ids") as running:
        yield running


@pytest.fixture
def options(knowing, stream):
    return {"target": knowing.target, "groupId": "g", "streamId": stream}


@pytest.fixture
def rows(spark):
    return spark.range(0, ROWS, 1, 3).selectExpr("cast(id as string) as value")


def write(df, options, run=""):
    named = {"runId": run} if run else {}
    df.write.format("dataproxy").mode("append").options(**options, **named).save()


def stored(hub, options):
    return sum(1 for _ in hub.records("g", options["streamId"]))


def test_a_named_write_is_stored_once_and_another_name_is_another_write(knowing, options, rows):
    for _ in range(2):
        write(rows, options, "nightly-2024-07-01")
    assert stored(knowing, options) == ROWS
    write(rows, options, "nightly-2024-07-02")
    assert stored(knowing, options) == 2 * ROWS
    write(rows, options)
    write(rows, options)
    assert stored(knowing, options) == 4 * ROWS, "without a name each write is one of its own"


def test_rows_that_are_not_the_same_are_kept(knowing, options, rows, spark):
    """A name that is used for other rows drops none of them."""
    write(rows, options, "r")
    write(spark.range(0, ROWS, 1, 3).selectExpr("concat('other ', id) as value"), options, "r")
    assert stored(knowing, options) == 2 * ROWS


def test_a_micro_batch_of_foreach_batch_that_is_run_again(knowing, options, spark, tmp_path):
    """The function fails behind its write, so Spark runs the batch again from the checkpoint."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines").write_text("".join(f"{number}\n" for number in range(ROWS)))
    fails = [True, False]

    def each(df, number):
        write(df, options, f"app-{number}")
        if fails.pop(0):
            raise RuntimeError("behind the write")

    def run():
        query = (
            spark.readStream.schema("value string").text(str(tmp_path / "in")).writeStream.foreachBatch(each)
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    with pytest.raises(PySparkException, match="behind the write"):
        run()
    assert stored(knowing, options) == ROWS
    run()
    assert fails == []
    assert stored(knowing, options) == ROWS


def test_foreach_partition_has_names_too(knowing, options, rows):
    for _ in range(2):
        rows.foreachPartition(writer(rows, **options, runId="by rows"))
    assert stored(knowing, options) == ROWS


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"rowIds": False}, "option runId needs ids of rows, but rows have none"),
        ({"messageType": 5}, "option runId needs ids of rows, but rows have none"),
    ],
)
def test_a_name_without_ids_is_refused(options, rows, more, text):
    with pytest.raises(ConfigError, match=text):
        check(rows, **options, runId="r", **more)


def test_a_name_beside_ids_of_the_rows_is_refused(options, rows):
    with pytest.raises(ConfigError, match="the column msg_id has them"):
        check(rows.selectExpr("value", "value as msg_id"), **options, runId="r")


def test_a_stream_has_names_of_its_own(options, spark, tmp_path):
    frame = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
    with pytest.raises(ConfigError, match="option runId names one write"):
        check(frame, **options, runId="r")
    query = (
        frame.writeStream.format("dataproxy").options(**options, runId="r")
        .option("checkpointLocation", str(tmp_path)).start()
    )  # fmt: skip
    with pytest.raises(PySparkException, match="option runId names one write"):
        query.awaitTermination(60)
