"""Streaming writes: what arrives, what is refused, and what a restart does."""

import itertools
import json
import os
import time

import pytest
from pyspark.errors import StreamingQueryException

from dataproxy.errors import ConfigError, TransportError
from dataproxy.spark import check
from dataproxy.spark.planning.runs import query_name


@pytest.fixture
def feed(spark, tmp_path):
    """Return a function that adds files of lines to a folder, and the stream that reads them in order."""
    folder = tmp_path / "lines"
    folder.mkdir()
    times = itertools.count(int(time.time()) - 1000)

    def add(name, lines):
        draft = tmp_path / name
        draft.write_text("".join(f"{line}\n" for line in lines))
        at = next(times)  # by which Spark orders them: the file system's own times may be equal
        os.utime(draft, (at, at))
        draft.rename(folder / name)

    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    return add, stream


def run(stream, sink, checkpoint, *, mode="append", **options):
    """Run a streaming write until all that is there is written; return the finished query."""
    writer = stream.writeStream.format("dataproxy").outputMode(mode).options(**{**sink.options, **options})
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination(250)
    return query


def batches(sink):
    return [json.loads(line) for line in sink.report_file.read_text().splitlines()]


def test_micro_batches_arrive_and_are_reported(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a", "b"])
    add("2", ["c"])
    query = run(stream, sink, tmp_path / "checkpoint")
    assert sink.bodies() == [b"a", b"b", b"c"]
    assert sorted(report["rows"] for report in batches(sink)) == [1, 2]
    assert [report["job"] for report in batches(sink)] == [f"{query_name(query.id)}.0", f"{query_name(query.id)}.1"]
    assert sum(progress["sink"]["numOutputRows"] for progress in query.recentProgress) == 3


def test_a_restart_goes_on_where_the_checkpoint_stands(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a", "b"])
    first = run(stream, sink, tmp_path / "checkpoint")
    add("2", ["c"])
    second = run(stream, sink, tmp_path / "checkpoint")
    assert first.id == second.id
    assert sink.bodies() == [b"a", b"b", b"c"]
    assert [report["job"] for report in batches(sink)] == [f"{query_name(first.id)}.0", f"{query_name(first.id)}.1"]


def test_a_micro_batch_whose_commit_was_lost_runs_again_under_the_same_name(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a", "b"])
    checkpoint = tmp_path / "checkpoint"
    run(stream, sink, checkpoint)
    for name in ("0", ".0.crc"):  # as after a crash between the sink's commit and Spark's
        (checkpoint / "commits" / name).unlink()
    run(stream, sink, checkpoint)
    assert sink.bodies() == [b"a", b"a", b"b", b"b"]
    ids = [(record.body, record.message_id) for record in sink.records()]
    assert sorted(ids) == sorted(2 * list(dict.fromkeys(ids)))  # each copy has its original's id
    assert len({report["job"] for report in batches(sink)}) == 1


def test_a_micro_batch_that_fails_leaves_a_report_of_all_its_attempts(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a", "b"])
    add("2", ["c", "x" * 1_000_000])
    with pytest.raises(StreamingQueryException, match="1000000"):
        run(stream, sink, tmp_path / "checkpoint")
    well, lost = batches(sink)
    assert (well["outcome"], well["acked"]) == ("committed", 2)
    assert well["uncommitted"] == {"attempts": 0, "acked": 0, "possibly_stored": 0, "failed": {}, "silent": 0}
    assert (lost["outcome"], lost["rows"], lost["unknown_partitions"]) == ("aborted", 0, 0)
    assert lost["job"] == well["job"].replace(".0", ".1")
    assert (lost["uncommitted"]["attempts"], lost["uncommitted"]["silent"]) == (3, 0)


def test_complete_mode_is_refused_with_the_reason(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a"])
    with pytest.raises(StreamingQueryException, match="would have to replace messages that were sent before"):
        run(stream.groupBy("value").count().select("value"), sink, tmp_path / "checkpoint", mode="complete")


def test_update_mode_is_refused_by_spark(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a"])
    with pytest.raises(StreamingQueryException, match="does not support Update mode"):
        run(stream.groupBy("value").count().select("value"), sink, tmp_path / "checkpoint", mode="update")


def test_a_bad_option_shows_as_the_query_s_error(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a"])
    with pytest.raises(StreamingQueryException, match="'lingr'"):
        run(stream, sink, tmp_path / "checkpoint", lingr="1s")


def test_check_finds_it_before_the_query_starts(feed, sink):
    _, stream = feed
    check(stream, **sink.options)
    check(stream, output_mode="Append", **sink.options, linger=None)
    with pytest.raises(ConfigError, match="'lingr'"):
        check(stream, **sink.options, lingr="1s")
    with pytest.raises(ConfigError, match="column 'n' is unknown"):
        check(stream.selectExpr("value", "1 as n"), **sink.options)
    with pytest.raises(ConfigError, match="would have to replace"):
        check(stream, output_mode="complete", **sink.options)
    with pytest.raises(ConfigError, match="output_mode='update'"):
        check(stream, output_mode="update", **sink.options)
    with pytest.raises(TransportError, match="no proxy can be reached"):
        check(stream, **{**sink.options, "connectCheck": "fail", "target": "tcp://127.0.0.1:1"})


def test_foreach_batch_writes_as_a_batch(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a", "b"])

    def write(df, number):
        sink.write(df)

    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(250)
    assert query.exception() is None
    assert sink.bodies() == [b"a", b"b"]


def test_a_continuous_query_is_planned_like_any_other(spark, sink, tmp_path):
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
    writer = stream.writeStream.format("dataproxy").options(**sink.options, lingr="1s")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(continuous="1 second").start()
    try:
        with pytest.raises(StreamingQueryException, match="no option 'lingr'"):
            query.awaitTermination(250)
    finally:
        query.stop()


def test_bodies_are_made_and_bad_records_written_in_micro_batches_too(feed, sink, tmp_path):
    add, stream = feed
    add("1", ["a,b", "c"])
    checkpoint, bad = tmp_path / "checkpoint", tmp_path / "bad"
    rows = stream.selectExpr("value as x", "length(value) as n")
    options = {"format": "csv", "escape": "", "badRecords": str(bad)}
    run(rows, sink, checkpoint, **options)
    assert sink.bodies() == [b"c,1"]
    for name in ("0", ".0.crc"):  # as after a crash between the sink's commit and Spark's
        (checkpoint / "commits" / name).unlink()
    run(rows, sink, checkpoint, **options)
    assert sink.bodies() == [b"c,1", b"c,1"]
    assert len({record.message_id for record in sink.records()}) == 1
    (path,) = bad.iterdir()
    assert json.loads(path.read_text())["columns"] == {"x": "a,b", "n": 3}
    assert [report["bad_files"] for report in batches(sink)] == [[str(path)]] * 2
