"""Messages that a broker stores damaged: a range ends with an error, or goes on without them, as the option says."""

import pytest

from dataproxy.errors import OffsetsLostError
from dataproxy.spark.tubemq.columns import RAW_SCHEMA
from dataproxy.spark.tubemq.plan import plan_batch
from dataproxy.spark.tubemq.ranges import read_range, shape_of
from tests.support.tubeserver import TubeServer


@pytest.fixture
def server():
    """Return a server whose second message has a wrong checksum, always."""
    with TubeServer({"one": 1}) as running:
        for number in range(3):
            running.put("one", b"%d" % number)

        def spoil(answer):
            answer.messages[1].checkSum += 1

        running.on("GetMessageRequestC2B", ("mangle", spoil), times=None)
        yield running


def bodies(server, **options):
    plan = plan_batch({"target": server.target, "group": "g", "topics": "one", **options})
    shape = shape_of(plan.settings, RAW_SCHEMA)
    ranges = (read_range(plan.settings, shape, one) for one in plan.ranges)
    return [body for rows in ranges for batch in rows for body in batch["body"].to_pylist()]


def test_by_default_the_range_fails(server):
    with pytest.raises(OffsetsLostError, match="1 messages at offset 0 of partition 1:one:0 of topic 'one'") as caught:
        bodies(server)
    assert caught.value.details == {"topic": "one", "partition": "1:one:0", "begin": 0, "messages": 1}


def test_without_the_option_the_others_are_read(server, caplog):
    assert bodies(server, failOnDataLoss="false") == [b"0", b"2"]
    assert "failOnDataLoss=false: they are skipped" in caplog.text
