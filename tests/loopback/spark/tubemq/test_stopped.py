"""Tasks that are stopped in the middle of their range."""

from dataproxy.spark.tubemq.columns import RAW_SCHEMA
from dataproxy.spark.tubemq.joined import BATCH_BYTES
from dataproxy.spark.tubemq.plan import plan_batch
from dataproxy.spark.tubemq.ranges import read_range, shape_of
from tests.support.tubeserver import TubeServer


def test_a_task_that_is_stopped_gives_its_partition_back():
    with TubeServer({"one": 1}) as server:
        for _ in range(20):
            server.put("one", bytes(BATCH_BYTES // 10))
        plan = plan_batch({"target": server.target, "group": "g", "topics": "one"})
        batches = read_range(plan.settings, shape_of(plan.settings, RAW_SCHEMA), plan.ranges[0])
        assert next(batches).num_rows < 20
        assert server.owner("g-read-0", "one", 0) is not None
        batches.close()
        assert server.owner("g-read-0", "one", 0) is None
