"""Writing a partition where there are connections: to Spark's JVM, and to the proxies that an error names."""

import socket

import pytest

from dataproxy.errors import BufferFullError
from dataproxy.spark.planning.columns import ColumnPlan
from dataproxy.spark.planning.options import SinkOptions
from dataproxy.spark.planning.writeplan import WritePlan
from dataproxy.spark.reporting.outlets import Outlets
from dataproxy.spark.writing import producers
from dataproxy.spark.writing.partition import write_batches
from tests.support.partitions import PLACE, FakeProducer, batches, plan, use_fakes


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    use_fakes(monkeypatch)


def test_before_the_first_batch_is_waited_for_connections_wait_for_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as jvm:
        jvm.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        found = []

        def asking():
            found.append(jvm.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))
            yield from batches(["a"])

        names = {"__name__": "pyspark.worker", "work": lambda: write_batches(asking(), plan(), PLACE)}
        exec("def main(infile, outfile):\n    work()", names)  # looks like the main function of PySpark's worker
        with jvm.makefile("rb") as source:
            names["main"](source, None)
        assert found == [1]


def test_a_full_buffer_names_each_proxy_with_the_reason(monkeypatch):
    def full(to, batch, **names):
        raise BufferFullError(
            "the buffer of 9 bytes is full and no room came within max_block=1 s; 2 messages of this call are out",
            hint="send slower",
            details={"limit_bytes": 9, "accepted": 2},
        )

    with socket.create_server(("127.0.0.1", 0)) as alive:
        target = f"127.0.0.1:{alive.getsockname()[1]}"
        producer = (("group_id", "g"), ("target", f"tcp://127.0.0.1:1,{target}"))
        made = WritePlan("job", SinkOptions(producer, "s"), ColumnPlan(value=0), Outlets())
        source = batches(["a"], ["b"] * 4)
        write_batches(batches(["a"]), made, PLACE)
        monkeypatch.setattr(producers, "send_record_batch", full)
        with pytest.raises(BufferFullError) as caught:
            write_batches(source, made, PLACE)
    assert str(caught.value) == (
        "partition 3 (attempt 1), in the batch after row 0: the buffer of 9 bytes is full and no room came within"
        f" maxBlock=1 s; 2 messages of this call are out; proxies: 127.0.0.1:1 (Connection refused), {target} (takes"
        " connections); when this attempt had ended, 0 rows of it were acknowledged and 0 others are possibly stored;"
        " check that the proxies answer, raise maxBlock (deliveryTimeout and a second where it is left out)"
        " or bufferBytes [BUFFER_FULL]"
    )
    assert caught.value.details == {"limit_bytes": 9, "accepted": 2, "partition": 3, "attempt": 1}
    assert FakeProducer.made[0].closed
