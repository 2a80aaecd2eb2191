"""A short run of ``make spark-chaos``: random ends of tasks and Python workers."""

import random
import sys

import pytest
from pyspark import cloudpickle

from dataproxy.hub import Hub
from tests.campaigns.spark_chaos import rounds
from tests.campaigns.spark_chaos.killer import Killer


@pytest.fixture(autouse=True)
def by_value():
    """Send the laboratory's functions to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[rounds.__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[rounds.__name__])


@pytest.mark.parametrize("run", [rounds.batch_round, rounds.stream_round])
def test_nothing_is_lost_and_copies_are_known(spark, tmp_path, run):
    with Hub(dedupe="ids") as hub:
        killer = Killer(spark.sparkContext, random.Random(5), limit=2)
        found = run(spark, hub, killer, "short", tmp_path, filtered=True)
    assert found.violations == []
