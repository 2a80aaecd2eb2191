"""Tasks follow the Manager: what it says while they run reaches them, and where it is silent they go on."""

import sys
import threading
import time
from pathlib import Path

import pytest
from pyspark import cloudpickle

from dataproxy.hub import Hub, open_store
from tests.campaigns.chaos.manager import Manager

HALF = 500
PATIENCE = 60.0
ROW = "row-{:04}" + "." * 1000  # Spark hands rows on when its buffers of 64 KiB are full


@pytest.fixture(autouse=True)
def by_value():
    """Send what this module defines to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def small_batches(spark):
    """Let Spark hand over a part of the first half before the second is there."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", HALF // 10)
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def wait_for(condition):
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def halves(gate, half, patience):
    """Return a function that yields half of the rows, and the rest once the file ``gate`` is there."""

    def pieces(batches):
        import pyarrow as pa

        end = time.monotonic() + patience
        for _ in batches:
            yield pa.record_batch([[ROW.format(n) for n in range(half)]], names=["value"])
            while not Path(gate).exists() and time.monotonic() < end:
                time.sleep(0.01)
            yield pa.record_batch([[ROW.format(n) for n in range(half, 2 * half)]], names=["value"])

    return pieces


def rows(hub):
    return [record.body for record in hub.records("g")] if hub.counts() else []


class Change:
    """A thread that does something once a hub has rows of a batch's first half, and then lets the second half go."""

    def __init__(self, first, gate, then):
        self._thread = threading.Thread(target=self._run, args=(first, gate, then), daemon=True)

    def _run(self, first, gate, then):
        wait_for(lambda: rows(first))
        then()
        gate.touch()

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *raised):
        self._thread.join(PATIENCE)


def write(spark, sink, gate, **options):
    df = spark.range(0, 1, 1, 1).mapInArrow(halves(str(gate), HALF, PATIENCE), "value string")
    given = {"discoveryInterval": "1s", "deliveryTimeout": "20s", "ackTimeout": "5s", "linger": "50ms", **options}
    return sink.write(df, **given)


ALL = [ROW.format(n).encode() for n in range(2 * HALF)]


def test_a_proxy_that_leaves_in_the_middle_of_a_batch_is_followed_by_another(spark, sink, tmp_path):
    with Hub() as other:
        leaving = Hub(store=tmp_path / "store")
        manager = Manager([leaving.port])

        def change():
            manager.ports = [other.port]
            leaving.close()

        try:
            with Change(leaving, tmp_path / "gate", change):
                report = write(spark, sink, tmp_path / "gate", target=manager.url)
            assert report["acked"] == 2 * HALF
            assert report["resent_rows"] == 0  # one attempt did it
            with open_store(tmp_path / "store") as store:
                before = [record.body for record in store.records("g")]
            assert before
            assert rows(other)
            assert sorted(before + rows(other)) == ALL
        finally:
            manager.close()
            leaving.close()


@pytest.mark.parametrize("mood", ["down", "garbage", "gone"])
def test_a_manager_that_fails_tasks_stops_none(spark, sink, tmp_path, mood):
    with Hub() as hub:
        manager = Manager([hub.port])
        asked = []

        def change():
            asked.append(manager.asked)
            if mood == "gone":
                manager.close()
            else:
                manager.mood = mood
                wait_for(lambda: manager.asked >= asked[0] + 2)

        try:
            with Change(hub, tmp_path / "gate", change):
                report = write(spark, sink, tmp_path / "gate", target=manager.url)
            assert report["acked"] == 2 * HALF
            assert sorted(rows(hub)) == ALL
        finally:
            if mood != "gone":
                manager.close()
