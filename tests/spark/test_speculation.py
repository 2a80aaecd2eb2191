"""A standalone master with two workers on two addresses of this machine, and a task that runs on both."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pyspark
import pytest

from dataproxy.hub import Hub
from tests.spark.test_processes import run

ROWS = 16_000
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


def tell_when_rows_arrive(hub, flag):
    """Touch a file when a thousand rows of partition 0 are in the hub."""
    rows = (record for record in hub.records("speculation", "s", follow=True) if int(record.body) < ROWS // 4)
    for _ in itertools.islice(rows, 1000):
        pass
    flag.touch()


def test_a_speculative_copy_leaves_no_doubled_row(worker_environment, tmp_path):
    report, arrived = tmp_path / "report.json", tmp_path / "arrived"
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(Hub(dedupe="ids"))
        url = stack.enter_context(daemon(tmp_path, worker_environment, *master, announces="Starting Spark master at "))
        for host in ("127.0.0.1", "127.0.0.2"):
            words = ["org.apache.spark.deploy.worker.Worker", url, "--host", host, "--webui-port", "0"]
            words += ["--cores", "1", "--memory", "600m", "--work-dir", str(tmp_path / host)]
            stack.enter_context(daemon(tmp_path, worker_environment, *words, announces="registered with master "))
        threading.Thread(target=tell_when_rows_arrive, args=(hub, arrived), daemon=True).start()
        run(tmp_path, worker_environment, "speculation", url, hub.target, str(report), str(arrived))
        bodies = Counter(record.body for record in hub.records("speculation", "s"))
        assert bodies == {f"{number:0200}".encode(): 1 for number in range(ROWS)}
        assert hub.stats()["duplicates"] >= 1000
    assert json.loads(report.read_text())["acked"] == ROWS
