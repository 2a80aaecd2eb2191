"""A driver that is killed in the middle of two batch jobs or of a stream, and what another driver makes of it."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from pyspark import cloudpickle

from dataproxy.hub import Hub
from tests.campaigns.spark_chaos.processes import descendants
from tests.campaigns.spark_chaos.sessions import borrowed_home
from tests.spark import jobs

MASTERS = os.environ.get("DATAPROXY_LOST_MASTERS", "local[2,3]").split()  # make test-spark: a local cluster too
ROWS, FIRST = 8000, 6000  # rows of each, and the first that the killed driver never gets through
ARRIVED = 4100  # of the stream: more than its first micro-batch
FILES = 2


@pytest.fixture(autouse=True)
def by_value():
    """Send what is defined beside this module to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(jobs)
    yield
    cloudpickle.unregister_pickle_by_value(jobs)


def alive(pid):
    try:
        return Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def kill_driver(process):
    """Kill the driver and its JVM, and wait until their Python workers have noticed."""
    family = descendants(process.pid)
    jvm = next(one for one in family if one.parent == process.pid and "SparkSubmit" in one.command)
    assert any("pyspark.daemon" in one.command for one in family)
    for pid in (jvm.pid, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    while any(alive(one.pid) for one in family):
        time.sleep(0.1)


def bodies(hub, stream):
    return Counter(record.body for record in hub.records("driver", stream))


@pytest.fixture
def lost(worker_environment, tmp_path):
    """Return a function that runs a driver until rows of each of its streams have arrived, and kills it."""
    environment = {**os.environ, **worker_environment, "SPARK_HOME": str(borrowed_home(tmp_path))}

    def run(hub, master, *streams):
        (tmp_path / "flag").touch()
        given = [master, hub.target, str(tmp_path), str(ROWS), str(FIRST), *streams]
        command = [sys.executable, jobs.__file__, "driver", *given]
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as process:
            try:
                for stream in streams:
                    assert len(list(islice(hub.records("driver", stream, follow=True), ARRIVED))) == ARRIVED
                kill_driver(process)
            finally:
                process.kill()  # where it is still there; its JVM ends with it
        (tmp_path / "flag").unlink()
        before = {stream: bodies(hub, stream) for stream in streams}
        assert all(ARRIVED <= found.total() <= FIRST for found in before.values())
        return before

    return run


@pytest.mark.parametrize("master", MASTERS)
def test_batches_of_a_killed_driver_are_written_again(spark, lost, tmp_path, master):
    with Hub(dedupe="ids") as hub:
        before = lost(hub, master, "known", "plain")
        df = jobs.batch_rows(spark, ROWS, str(tmp_path / "flag"), FIRST)
        for stream in before:
            jobs.write_batch(df, hub.target, stream)
        source = Counter(row.encode() for row in jobs.numbered(ROWS))
        assert bodies(hub, "known") == source
        # Another job gives other ids: what had arrived is there twice.
        assert bodies(hub, "plain") == source + before["plain"]
        ids = Counter(record.message_id for record in hub.records("driver", "plain"))
        assert set(ids.values()) == {1}


@pytest.mark.parametrize("master", MASTERS)
def test_a_stream_of_a_killed_driver_goes_on(spark, lost, tmp_path, master):
    lines, wanted = tmp_path / "lines", jobs.numbered(ROWS)
    lines.mkdir()
    for number in range(FILES):
        part = wanted[number * ROWS // FILES : (number + 1) * ROWS // FILES]
        (lines / f"{number}.txt").write_text("\n".join(part) + "\n")
        os.utime(lines / f"{number}.txt", (number, number))  # the order of the micro-batches
    with Hub(dedupe="ids") as hub:
        lost(hub, master, "stream")
        query = jobs.start_query(
            spark, str(lines), str(tmp_path / "checkpoint"), str(tmp_path / "flag"), FIRST, hub.target
        )
        assert query.awaitTermination(250)
        assert bodies(hub, "stream") == Counter(row.encode() for row in wanted)
