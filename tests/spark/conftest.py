"""One Spark session and one hub for all Spark tests."""

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

import dataproxy
from dataproxy.hub import Hub

PACKAGES = Path(dataproxy.__file__).parents[1]
SECONDS = 600  # for one test, on a busy machine; the first pays for Spark's start
_numbers = itertools.count()


def pytest_collection_modifyitems(items):
    """Give the tests of this folder more time than others."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(SECONDS))


def _worker_environment() -> dict[str, str]:
    """Return the variables that give Spark's Python workers this interpreter and this package."""
    path = os.pathsep.join(part for part in (str(PACKAGES), os.environ.get("PYTHONPATH", "")) if part)
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}


@pytest.fixture(scope="session")
def worker_environment():
    """Return the variables that give Spark's Python workers this interpreter and this package."""
    return _worker_environment()


@pytest.fixture(scope="session")
def spark(worker_environment, tmp_path_factory):
    """Return a session with two task slots in which a task has three attempts."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        for name, value in worker_environment.items():
            patch.setenv(name, value)
        session = (
            SparkSession.builder.master("local[2,3]")
            .appName("dataproxy-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def active_session(request):
    """Make the session that of this thread, as docs/spark.md says: a broken connection to the JVM takes it along."""
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").createDataFrame([(0,)], "n int")


@pytest.fixture(scope="session")
def hub():
    """Return a hub in memory."""
    with Hub() as running:
        yield running


@pytest.fixture
def stream():
    """Return a stream id that no other test uses."""
    return f"s{next(_numbers)}"


class Sink:
    """Writes DataFrames to the hub and reads the hub back."""

    def __init__(self, hub: Hub, stream: str, report: Path) -> None:
        self.hub = hub
        self.stream = stream
        self.options = {"target": hub.target, "groupId": "g", "streamId": stream, "reportFile": str(report)}
        self.report_file = report

    def write(self, df, *, without=(), **options):
        """Write `df` with the usual options, some changed or left out; return the job's report."""
        given = {name: value for name, value in {**self.options, **options}.items() if name not in without}
        df.write.format("dataproxy").mode("append").options(**given).save()
        return json.loads(self.report_file.read_text())

    def records(self, group="g", stream=None):
        """Return what the hub has of one stream."""
        return list(self.hub.records(group, stream or self.stream))

    def bodies(self, group="g", stream=None):
        """Return the sorted bodies that the hub has of one stream."""
        return sorted(record.body for record in self.records(group, stream))


@pytest.fixture
def sink(hub, stream, tmp_path):
    """Return a sink with a stream of its own."""
    return Sink(hub, stream, tmp_path / "report.json")
