"""A standalone master with two workers on two addresses of this machine, and a task that runs on both."""

import contextlib
import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pyspark
import pytest

from dataproxy.hub import Hub
from tests.spark.test_processes import run

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@contextlib.contextmanager
def daemon(folder, environment, *words, announces):
    """Run a daemon of Spark; yield what follows the words in its log that announce it."""
    with subprocess.Popen(
        [str(SPARK_CLASS), *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            for line in process.stderr:
                if announces in line:
                    break
            else:
                pytest.fail(f"{words[0]} ended without {announces!r}")
            yield line.partition(announces)[2].strip()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.stderr.close()


def test_a_speculative_copy_leaves_no_doubled_row(worker_environment, tmp_path):
    report = tmp_path / "report.json"
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(Hub(dedupe="ids"))
        url = stack.enter_context(daemon(tmp_path, worker_environment, *master, announces="Starting Spark master at "))
        for host in ("127.0.0.1", "127.0.0.2"):
            words = ["org.apache.spark.deploy.worker.Worker", url, "--host", host, "--webui-port", "0"]
            words += ["--cores", "1", "--memory", "600m", "--work-dir", str(tmp_path / host)]
            stack.enter_context(daemon(tmp_path, worker_environment, *words, announces="registered with master "))
        run(tmp_path, worker_environment, "speculation", url, hub.target, str(report))
        bodies = Counter(record.body for record in hub.records("speculation", "s"))
        assert bodies == {f"{number:0200}".encode(): 1 for number in range(16_000)}
        assert hub.stats()["duplicates"] >= 1000
    assert json.loads(report.read_text())["acked"] == 16_000
