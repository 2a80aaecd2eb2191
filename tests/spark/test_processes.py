"""Executors as processes of their own, and what Spark finds when the core is broken."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_dataproxy
from dataproxy.hub import Hub
from tests.campaigns.spark_chaos.laws import judge
from tests.campaigns.spark_chaos.sessions import borrowed_home

NUMBERS = {str(number).encode() for number in range(20_000)}
WAYS = ("well", "task_failed", "worker_killed", "executor_lost")
CONNECT = ("found", "registered", "notebook", "sql", "foreach", "stream", "each", "csv")
JOBS = Path(__file__).with_name("jobs.py")
BYSTANDER = """
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage


class Writer(DataSourceArrowWriter):
    def __init__(self, folder):
        self.folder = folder

    def write(self, iterator):
        rows = sum(batch.num_rows for batch in iterator)
        Path(self.folder, f"part-{TaskContext.get().partitionId()}").write_text(str(rows))
        return WriterCommitMessage()


class DefaultSource(DataSource):
    @classmethod
    def name(cls):
        return "bystander"

    def writer(self, schema, overwrite):
        return Writer(self.options["folder"])
"""


@pytest.fixture
def hub():
    """Return a hub in memory for one test: the jobs name their streams, and a second try is not to meet the first."""
    with Hub() as running:
        yield running


def run(folder, environment, *arguments):
    """Run one of the jobs in a folder from which nothing can be imported; return the ended process with its output."""
    done = subprocess.run(
        [sys.executable, str(JOBS), *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_executors_may_be_processes_of_their_own(hub, worker_environment, tmp_path):
    home = str(borrowed_home(tmp_path))
    done = run(tmp_path, {**worker_environment, "SPARK_HOME": home}, "cluster", hub.target, str(tmp_path))
    line = r" INFO dataproxy.spark.sink: job \S+: 20000 rows in 4 partitions, 20000 acknowledged .*, longest task "
    assert len(re.findall(line, done.stderr)) == len([*WAYS, "after"])
    down = " WARNING dataproxy.spark.target: 1 of 2 proxies cannot be reached from the driver: 127.0.0.1:1: Connection "
    assert done.stderr.count(down) == len(["after", "quiet"])
    assert json.loads((tmp_path / "quiet").read_text())["acked"] == 10
    for stream in (0, 1):
        found = sorted(int(record.body) for record in hub.records("cluster", f"c{stream}"))
        assert found == list(range(stream, 20_000, 2))
    for way in WAYS:
        accounting = json.loads((tmp_path / way).read_text())
        assert (accounting["rows"], accounting["acked"], accounting["partitions"]) == (20_000, 20_000, 4)
        assert (accounting["resent_partitions"] >= 1) == (way != "well")
        lost = accounting["uncommitted"]
        assert (lost["attempts"] + lost["silent"] >= 1) == (way != "well")
        surplus, violations = judge(hub.records("cluster", way), NUMBERS if way != "well" else set(), filtered=False)
        assert (violations, surplus <= 5000) == ([], True), way
    assert "cancelled: True\n" in done.stdout
    cancelled = json.loads((tmp_path / "cancelled").read_text())
    assert (cancelled["outcome"], cancelled["partitions"], cancelled["unfinished_partitions"]) == ("aborted", 0, 2)
    assert re.search(r"WARNING dataproxy.spark.sink: write aborted; at least \d+ rows were acknowledged", done.stderr)
    stopped = [record.body.split(b"-") for record in hub.records("cluster", "cancelled")]
    for part in {part for part, _ in stopped}:  # without a gap, and none twice
        rows = sorted(int(row) for one, row in stopped if one == part)
        assert rows == list(range(len(rows)))
    assert {part for part, _ in stopped} == {b"0", b"1"}
    assert json.loads((tmp_path / "after").read_text())["acked"] == 20_000


def test_spark_connect(hub, worker_environment, tmp_path):
    printed = run(tmp_path, worker_environment, "connect", hub.target, str(tmp_path)).stdout
    found = {name: sorted(int(record.body) for record in hub.records("connect", name)) for name in CONNECT}
    assert found == {name: list(range(100)) for name in CONNECT}
    rows = {record.body for record in hub.records("connect", "json")}
    assert rows == {b'{"value":"%d"}' % number for number in range(100)}
    assert "operations: 1\n" in printed
    assert "interrupted: True\n" in printed
    assert "counters: None" in printed
    assert printed.count("not here: over Spark Connect ") == 2
    assert "'linger'" in printed


def test_a_broken_core_leaves_other_formats_alone(worker_environment, tmp_path):
    packages, folder = tmp_path / "packages", tmp_path / "out"
    folder.mkdir()
    for name in ("pyspark_dataproxy", "pyspark_tubemq"):
        source = Path(pyspark_dataproxy.__file__).parents[1] / name
        shutil.copytree(source, packages / name, ignore=shutil.ignore_patterns("__py*"))
    for name, text in {
        "dataproxy": 'raise ImportError("libsnappy is missing")',
        "pyspark_bystander": BYSTANDER,
    }.items():
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(text)
    printed = run(folder, {**worker_environment, "PYTHONPATH": str(packages)}, "discovery", str(folder)).stdout
    assert [part.read_text() for part in folder.glob("part-*")] == ["3"]
    assert "refused: " in printed
    assert "libsnappy is missing" in printed
