"""What is no DataFrame and no session with a context."""

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from dataproxy import spark
from dataproxy.errors import ConfigError
from dataproxy.spark.interfaces import spark_context

CALLS = {
    "check": lambda df: spark.check(df, target="tcp://127.0.0.1:1", groupId="g", streamId="s"),
    "writer": lambda df: spark.writer(df, target="tcp://127.0.0.1:1", groupId="g", streamId="s"),
    "to_messages": spark.to_messages,
    "with_json_value": spark.with_json_value,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("df", [None, "df", SimpleNamespace(schema=1)], ids=str)
def test_what_is_no_dataframe_is_refused_by_its_type(call, df):
    with pytest.raises(ConfigError, match=f"{type(df).__name__!r} is not a Spark DataFrame"):
        call(df)


def test_over_connect_there_is_no_context():
    class Remote:
        @property
        def sparkContext(self):
            raise PySparkException("not here")

    assert spark_context(Remote()) is None
