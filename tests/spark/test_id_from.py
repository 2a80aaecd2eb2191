"""Ids by columns that say which row a row is: each row is there once, however Spark cuts partitions the next time."""

import logging
import os
import subprocess
import sys
from collections import Counter

import pytest
from pyspark import cloudpickle

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.spark import check, writer
from dataproxy.spark.planning import places
from dataproxy.spark.sink import plan_writer
from tests.spark import replays

ROWS = 3000
WORDS = "their ids are made from their places in their partitions"
ADAPTIVE = "spark.sql.adaptive.enabled"


@pytest.fixture(scope="module")
def knowing():
    """Return a hub that stores an id once."""
    with Hub(dedupe="ids") as running:
        yield running


@pytest.fixture
def options(knowing, stream):
    return {"target": knowing.target, "groupId": "g", "streamId": stream}


@pytest.fixture
def stored(knowing, options):
    """Return a function that counts each body that the hub has."""
    return lambda: Counter(record.body for record in knowing.records("g", options["streamId"]))


def write(df, options, **more):
    df.write.format("dataproxy").mode("append").options(**options, **more).save()


@pytest.fixture
def rows(spark):
    """Return rows of which two and two have the same body."""
    return spark.range(0, ROWS, 1, 3).selectExpr(f"cast(id % {ROWS // 2} as string) as value", "id")


TWICE = {b"%d" % number: 2 for number in range(ROWS // 2)}


def with_one_core(environment, tmp_path, target, *names):
    """Run streams in a driver of their own; return what became of them and the log."""
    command = [sys.executable, replays.__file__, "local[1]", target, str(tmp_path), *names]
    given = {**os.environ, **environment}
    done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split(), done.stderr


def test_streams_that_died_before_their_commit_go_on_with_one_core_for_two(spark, worker_environment, tmp_path):
    names = ["by_place", "files", "rate", "queue"]
    assert spark.sparkContext.defaultParallelism == 2
    flag = tmp_path / "flag"
    flag.touch()
    with Hub(dedupe="ids") as hub:
        cloudpickle.register_pickle_by_value(replays)
        try:
            assert replays.run(spark, hub.target, tmp_path, *names) == ["died"] * 4
        finally:
            cloudpickle.unregister_pickle_by_value(replays)
        assert all(hub.counts()["g", name].records == replays.ROWS for name in names)
        flag.unlink()
        ends, log = with_one_core(worker_environment, tmp_path, hub.target, *names)
        assert ends == ["ended"] * 4
        found = {name: Counter(record.body for record in hub.records("g", name)) for name in names}
    assert log.count(WORDS) == 1, "for the stream without idFrom, once"
    twice = {f"row {row}".encode(): 2 for row in range(replays.ROWS // 2)}
    assert found["files"] == found["queue"] == twice
    assert found["rate"] == dict.fromkeys(found["rate"], 2), "that of a later micro-batch too"
    assert set(found["rate"]) >= set(twice)
    assert set(found["by_place"]) == set(twice)
    assert found["by_place"].total() > replays.ROWS, "what the words are about"


def test_a_named_write_comes_again_in_any_partitions_and_order(spark, options, stored, rows):
    shapes = [
        rows,
        rows.coalesce(1),
        rows.repartition(7),
        rows.repartition(2, "value").sortWithinPartitions(rows.id.desc()),
        rows.orderBy("value"),
    ]
    before = spark.conf.get(ADAPTIVE)
    try:
        for number, df in enumerate(shapes):
            spark.conf.set(ADAPTIVE, str(number % 2 == 0).lower())
            write(df, options, runId="r", idFrom="id")
            assert stored() == TWICE, number
    finally:
        spark.conf.set(ADAPTIVE, before)
    write(rows.repartition(7).select("value"), options, runId="r")
    assert stored().total() > ROWS, "without idFrom such a write is stored again"


def test_adaptive_execution_may_cut_a_shuffle_as_it_likes(spark, options, stored, rows):
    grouped = rows.groupBy("value").count().selectExpr("value", "value as key")
    keys = {"spark.sql.shuffle.partitions": "9", "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "13"}
    before = {key: spark.conf.get(key, None) for key in keys}
    try:
        for settings in ({ADAPTIVE: "true", **keys}, {ADAPTIVE: "false", **keys}):
            for key, value in settings.items():
                spark.conf.set(key, value)
            write(grouped, options, runId="r", idFrom="key")
    finally:
        spark.conf.set(ADAPTIVE, "true")
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)
    assert stored() == dict.fromkeys(TWICE, 1)


def test_rows_that_explode_makes_of_one_are_different_messages(options, stored, rows):
    many = rows.selectExpr("explode(array(value, value, 'x', value)) as value", "id")
    for partitions in (1, 4):
        write(many.coalesce(partitions), options, runId="r", idFrom="id")
        assert stored().total() == 4 * ROWS
    assert stored()[b"x"] == ROWS


def test_foreach_partition_and_whole_rows_have_them_too(knowing, options, rows):
    for df in (rows, rows.coalesce(1)):
        df.foreachPartition(writer(df, **options, runId="r", idFrom="ID"))
    assert sum(1 for _ in knowing.records("g", options["streamId"])) == ROWS
    options = {**options, "streamId": options["streamId"] + "-json"}
    for df in (rows, rows.coalesce(1)):
        write(df, options, runId="r", idFrom="id", format="json")
    bodies = Counter(record.body for record in knowing.records("g", options["streamId"]))
    assert bodies == {b'{"value":"%d","id":%d}' % (number % (ROWS // 2), number): 1 for number in range(ROWS)}


def test_the_planning_says_what_ids_name(options, rows, caplog):
    for more, times in (({}, 1), ({"reportLog": "false"}, 0), ({"idFrom": "id"}, 0)):
        named = {**options, "streamId": f"{options['streamId']}-{len(more)}-{times}", "runId": "r", **more}
        frame = rows if "idFrom" in more else rows.select("value")
        for plan in (
            lambda: check(frame, **named),  # noqa: B023 - called here
            lambda: plan_writer(named, frame.schema, overwrite=False),  # noqa: B023
        ):
            caplog.clear()
            places._said.clear()
            with caplog.at_level(logging.WARNING):
                plan()
            assert caplog.text.count(WORDS) == times
    caplog.clear()
    plan_writer(options, rows.select("value").schema, overwrite=False)
    assert WORDS not in caplog.text, "a write without a name never comes again under its ids"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"rowIds": False}, "option idFrom makes ids of rows, but rows have none"),
        ({"messageType": 5}, "option idFrom makes ids of rows, but rows have none"),
        ({"idFrom": "idd"}, r"option idFrom names 'idd', the columns are \['value', 'id'\]"),
        (
            {"idFrom": "_metadata.row_index"},
            r'add it by select\("\*", "_metadata.row_index"\) and name it as idFrom=row_',
        ),
    ],
)
def test_what_cannot_make_ids_is_refused(options, rows, more, text):
    with pytest.raises(ConfigError, match=text):
        check(rows, **{**options, "idFrom": "id", **more})


def test_ids_of_the_rows_beside_ids_of_columns_are_refused(options, rows):
    with pytest.raises(ConfigError, match="the column msg_id has them"):
        check(rows.selectExpr("*", "value as msg_id"), **options, idFrom="id")
