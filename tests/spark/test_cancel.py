"""Cancelled jobs: they end, their workers are gone, and what had arrived is true."""

import json
import socket
import sys
import time

import pytest
from pyspark import InheritableThread, cloudpickle

from dataproxy.hub import Hub
from tests.campaigns.spark_chaos.laws import judge


@pytest.fixture(autouse=True)
def by_value():
    """Send what this module defines to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def endless(batches):
    """Yield numbered rows of this partition, for ever."""
    import itertools

    import pyarrow as pa
    from pyspark import TaskContext

    partition = TaskContext.get().partitionId()
    for start in itertools.count(0, 100):
        rows = [f"{partition}-{number}" for number in range(start, start + 100)]
        yield pa.record_batch([rows], names=["value"])
        time.sleep(0.001)  # a slow source, so that the test does not fill the memory


def by_group(spark):
    spark.sparkContext.cancelJobGroup("endless")


def by_tag(spark):
    spark.sparkContext.cancelJobsWithTag("endless-tag")


def by_session(spark):
    assert len(spark.interruptAll()) == 1


def all_jobs(spark):
    spark.sparkContext.cancelAllJobs()


def cancelled(spark, sink, when, cancel, **options):
    """Write without an end, cancel once ``when`` returns; return the text of the error."""

    def interrupt():
        when()
        cancel(spark)

    thread = InheritableThread(interrupt, session=spark, daemon=True)
    thread.start()
    spark.sparkContext.setJobGroup("endless", "a write without end")
    spark.sparkContext.addJobTag("endless-tag")
    try:
        with pytest.raises(Exception, match=r"(?i)cancel") as caught:
            sink.write(spark.range(0, 2, 1, 2).mapInArrow(endless, "value string"), **options)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        spark.sparkContext.clearJobTags()
    thread.join()
    return str(caught.value)


def left_behind(sink):
    """Return of how many attempts the report of a cancelled write tells, or tells that nothing is known."""
    accounting = json.loads(sink.report_file.read_text())
    assert (accounting["outcome"], accounting["partitions"], accounting["unfinished_partitions"]) == ("aborted", 0, 2)
    return (
        accounting["uncommitted"]["attempts"] + accounting["uncommitted"]["silent"] + accounting["unknown_partitions"]
    )


@pytest.mark.parametrize("cancel", [by_group, by_tag, by_session])
def test_a_cancelled_write_leaves_true_rows_and_no_worker(spark, sink, cancel):
    with Hub() as hub:
        sink.hub = hub
        sink.options["target"] = hub.target

        def arrives():
            next(hub.records("g", sink.stream, follow=True))

        cancelled(spark, sink, arrives, cancel)
        while hub.stats()["connections"]:  # those of the cancelled tasks' producers
            time.sleep(0.05)
        assert left_behind(sink) == 2
        records = sink.records()
        numbers = [record.body.decode().split("-") for record in records]
        source = {f"{p}-{n}".encode() for p in (0, 1) for n in range(1 + max(int(n) for _, n in numbers))}
        surplus, violations = judge(records, {record.body for record in records}, filtered=True)
        assert (surplus, violations) == (0, [])
        assert {record.body for record in records} <= source
        report = sink.write(spark.range(10).selectExpr("cast(id as string) as value"))
        assert (report["rows"], report["acked"], report["resent_partitions"]) == (10, 10, 0)


def test_a_write_that_waits_for_a_silent_proxy_can_be_cancelled(spark, sink):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        accepted = []
        options = {"target": f"tcp://127.0.0.1:{silent.getsockname()[1]}", "connectCheck": "off"}

        def connects():
            accepted.append(silent.accept()[0])
            accepted[0].recv(1)

        text = cancelled(spark, sink, connects, all_jobs, **options, deliveryTimeout="1h", bufferBytes="1MiB")
        with accepted[0]:
            while accepted[0].recv(1 << 16):  # until the worker is gone
                pass
    assert "UndeliveredError" not in text
    assert left_behind(sink) == 2
    assert sink.write(spark.range(10).selectExpr("cast(id as string) as value"))["acked"] == 10
