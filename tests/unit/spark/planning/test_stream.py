"""Where a streaming task stands."""

from types import SimpleNamespace

import pytest
from pyspark.sql.datasource import WriterCommitMessage

from dataproxy.errors import ConfigError, LocalProtocolError
from dataproxy.spark import stream
from dataproxy.spark.planning.columns import ColumnPlan
from dataproxy.spark.planning.options import SinkOptions
from dataproxy.spark.planning.runs import stream_run
from dataproxy.spark.planning.writeplan import WritePlan
from dataproxy.spark.reporting.outlets import Outlets
from dataproxy.spark.reporting.reports import PartitionReport

TOLD = {"sql.streaming.queryId": "b1f3", "streaming.sql.batchId": "7"}


@pytest.fixture
def told(monkeypatch):
    """Return a function that says what Spark tells the task."""

    def tell(properties):
        context = SimpleNamespace(
            getLocalProperty=properties.get, partitionId=lambda: 3, attemptNumber=lambda: 1
        )  # fmt: skip
        monkeypatch.setattr(stream, "TaskContext", SimpleNamespace(get=lambda: context))

    return tell


def test_a_task_of_a_query_is_named_by_query_and_micro_batch(told):
    told(TOLD)
    place = stream.task_run()
    assert (place.partition, place.attempt, place.run) == (3, 1, stream_run("b1f3", "7"))


@pytest.mark.parametrize("missing", TOLD)
def test_where_spark_does_not_tell_them_no_two_runs_have_the_same_name(told, missing):
    told({name: value for name, value in TOLD.items() if name != missing})
    assert stream.task_run().run != stream.task_run().run


@pytest.mark.parametrize("message", [None, WriterCommitMessage()])
def test_an_epoch_without_a_report_is_that_of_a_continuous_query(message):
    writer = stream.DataProxyStreamWriter(WritePlan("", SinkOptions((), "s"), ColumnPlan(value=0), Outlets()))
    with pytest.raises(ConfigError, match=r"no row of epoch 0: trigger\(continuous=.*trigger\(processingTime="):
        writer.commit([message] * 3, 0)
    part = PartitionReport("run", 0, 0, 1, 1, 1, 0, 0, 0.1)
    with pytest.raises(LocalProtocolError, match="1 of 2 partitions reported"):
        writer.commit([part, message], 1)
    writer.commit([], 2)
