"""Where a streaming task stands."""

from types import SimpleNamespace

import pytest

from dataproxy.spark import stream
from dataproxy.spark.runs import stream_run

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
