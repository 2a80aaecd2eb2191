"""A sender that cannot use the rest once a row is lost: it waits for no more room and takes no more rows."""

import socket

import pyarrow as pa
import pytest

from dataproxy.errors import UndeliveredError
from dataproxy.spark.planning.columns import ColumnPlan
from dataproxy.spark.planning.options import SinkOptions
from dataproxy.spark.planning.writeplan import TaskPlace, WritePlan
from dataproxy.spark.reporting.outlets import Outlets
from dataproxy.spark.writing.partition import write_batches

ROWS = 2000  # of a kilobyte: thirty times what the buffer holds


def plan(target):
    producer = {
        "ack_timeout": 0.2,
        "batch_bytes": 8192,
        "buffer_bytes": 65536,
        "connections": 1,
        "delivery_timeout": 0.4,
        "group_id": "g",
        "linger": 0.01,
        "max_block": 60.0,
        "target": target,
    }
    return WritePlan("job", SinkOptions(tuple(sorted(producer.items())), "s"), ColumnPlan(value=0), Outlets())


def lose(target):
    """Write one batch that nobody answers; return the task's error."""
    batch = pa.record_batch([pa.array(["x" * 1024] * ROWS)], names=["value"])
    with pytest.raises(UndeliveredError) as caught:
        write_batches(iter([batch]), plan(target), TaskPlace(0, 0, "job"))
    return caught.value


def test_after_the_first_lost_row_a_batch_is_not_sent_to_its_end():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = lose(f"tcp://127.0.0.1:{silent.getsockname()[1]}")
    assert 0 < error.report.accepted < ROWS / 2
    assert str(error).startswith(f"{ROWS} of {ROWS} rows for the group g were not delivered: code ")
    assert f"{ROWS - error.report.accepted} not sent" in str(error)


def test_a_proxy_that_answers_no_connection_is_named_with_the_reason():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = lose(f"tcp://127.0.0.1:{port}")
    assert f"127.0.0.1:{port} (" in str(error)
    assert "refused" in str(error)


def test_a_proxy_that_takes_connections_and_answers_nothing_is_named_too():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        error = lose(f"tcp://127.0.0.1:{port}")
    assert f"127.0.0.1:{port} (takes connections)" in str(error)
