"""What a report says of rows that may be there twice is true, whatever the server remembers."""

import json
import sys

import pytest
from pyspark import TaskContext, cloudpickle

from dataproxy.hub import Hub
from dataproxy.spark.sink import DataProxyWriter, plan_writer
from pyspark_dataproxy import DefaultSource

ROWS = 100_000


class LosesTheFirst(DataProxyWriter):
    """Loses each partition's first attempt after its rows were acknowledged."""

    def write(self, iterator):
        report = super().write(iterator)
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("lost on purpose")
        return report


class LosesTheFirstSource(DefaultSource):
    @classmethod
    def name(cls):
        return "dataproxy_loses_the_first"

    def writer(self, schema, overwrite):
        return LosesTheFirst(plan_writer(self.options, schema, overwrite)._plan)


@pytest.fixture(autouse=True)
def by_value():
    """Send what this module defines to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def written(spark, hub, folder, name="dataproxy_loses_the_first", **options):
    """Write `ROWS` rows in one partition whose first attempt is lost; return the report."""
    spark.dataSource.register(LosesTheFirstSource)
    report = folder / "report.json"
    rows = spark.range(0, ROWS, 1, 1).selectExpr("cast(id as string) as value", "cast(id as string) as name")
    rows = rows.withColumnRenamed("name", "msg_id") if options.pop("named", False) else rows.drop("name")
    options = {"target": hub.target, "groupId": "g", "streamId": "s", "reportFile": str(report), **options}
    rows.write.format(name).mode("append").options(**options).save()
    return json.loads(report.read_text())


def surplus(hub):
    return sum(count.records for count in hub.counts().values()) - ROWS


def test_a_hub_that_knows_ids_leaves_no_copy_and_the_report_says_so(spark, tmp_path):
    with Hub(dedupe="ids") as hub:
        accounting = written(spark, hub, tmp_path)
        assert surplus(hub) == accounting["duplicates_possible"] == 0
        assert accounting["duplicates_filtered"] == hub.stats()["duplicates"] == ROWS
        assert hub.stats()["store"]["row_blocks"] == -(-ROWS // 256)


def test_a_hub_that_had_to_forget_leaves_copies_and_the_report_says_how_many(spark, tmp_path):
    with Hub(dedupe="ids", dedupe_memory="64KiB") as hub:
        accounting = written(spark, hub, tmp_path)
        assert hub.stats()["store"]["forgotten_rows"] > 0
        assert 0 < surplus(hub) <= accounting["duplicates_possible"] <= ROWS
        assert accounting["duplicates_filtered"] == ROWS - surplus(hub)


@pytest.mark.parametrize("options", [{}, {"rowIds": "false"}], ids=["no window", "no ids"])
def test_without_a_filter_every_row_may_be_there_twice(spark, tmp_path, options):
    with Hub(dedupe="ids" if options else "off") as hub:
        accounting = written(spark, hub, tmp_path, **options)
        assert surplus(hub) == accounting["duplicates_possible"] == ROWS
        assert accounting["duplicates_filtered"] == 0


def test_ids_of_the_rows_own_are_filtered_and_counted_too(spark, tmp_path):
    with Hub(dedupe="ids") as hub:
        accounting = written(spark, hub, tmp_path, named=True)
        assert (surplus(hub), accounting["duplicates_possible"]) == (0, 0)
        assert (accounting["duplicates_filtered"], accounting["conflicts"]) == (ROWS, 0)
        spark.dataSource.register(LosesTheFirstSource)
        again = spark.range(0, 10, 1, 1).selectExpr("concat('other ', id) as value", "cast(id as string) as msg_id")
        options = {"target": hub.target, "groupId": "g", "streamId": "s", "reportFile": str(tmp_path / "other.json")}
        again.write.format("dataproxy").mode("append").options(**options).save()
        accounting = json.loads((tmp_path / "other.json").read_text())
        assert (
            accounting["rows"],
            accounting["acked"],
            accounting["duplicates_filtered"],
            accounting["conflicts"],
        ) == (10, 10, 10, 10)


def test_of_two_hubs_none_knows_what_the_other_has(spark, tmp_path):
    with Hub(dedupe="ids") as first, Hub(dedupe="ids") as second:
        two = f"{first.target},{second.target.removeprefix('tcp://')}"
        accounting = written(spark, first, tmp_path, target=two, connections="2", batchBytes="16KiB")
        twice = surplus(first) + surplus(second) + ROWS
        assert 0 <= twice <= accounting["duplicates_possible"]


@pytest.mark.parametrize("policy", ["first", "both"])
def test_rows_that_were_read_and_changed_are_not_taken_for_what_they_were(spark, policy):
    with Hub(dedupe="ids", dedupe_conflict=policy) as hub:
        options = {"target": hub.target, "groupId": "g", "streamId": "s"}
        rows = spark.range(0, 1000, 1, 2).selectExpr("concat('body ', id) as value")
        rows.write.format("dataproxy").mode("append").options(**options).save()
        read = spark.read.format("dataproxy").options(target=hub.manager_url, groupId="g").load()
        changed = read.selectExpr("cast(upper(cast(value as string)) as binary) as value", "stream_id", "dt", "msg_id")
        rows = spark.createDataFrame(changed.collect(), changed.schema)
        del options["streamId"]
        for _ in range(2):
            rows.write.format("dataproxy").mode("append").options(**options).save()
        found = [record.body for record in hub.records("g", "s")]
    assert sorted(found) == sorted([*(b"body %d" % n for n in range(1000)), *(b"BODY %d" % n for n in range(1000))])
