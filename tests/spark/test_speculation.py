"""A standalone master with two workers on two addresses of this machine, and a task that runs on both."""

import contextlib
import itertools
import json
import threading
from collections import Counter

from dataproxy.hub import Hub
from tests.campaigns.spark_chaos.standalone import cluster
from tests.spark.test_processes import run

ROWS = 16_000


def tell_when_rows_arrive(hub, flag):
    """Touch a file when a thousand rows of partition 0 are in the hub."""
    rows = (record for record in hub.records("speculation", "s", follow=True) if int(record.body) < ROWS // 4)
    for _ in itertools.islice(rows, 1000):
        pass
    flag.touch()


def test_a_speculative_copy_leaves_no_doubled_row(worker_environment, tmp_path):
    report, arrived = tmp_path / "report.json", tmp_path / "arrived"
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(Hub(dedupe="ids"))
        url = stack.enter_context(cluster(tmp_path, worker_environment))
        threading.Thread(target=tell_when_rows_arrive, args=(hub, arrived), daemon=True).start()
        run(tmp_path, worker_environment, "speculation", url, hub.target, str(report), str(arrived))
        bodies = Counter(record.body for record in hub.records("speculation", "s"))
        assert bodies == {f"{number:0200}".encode(): 1 for number in range(ROWS)}
        assert hub.stats()["duplicates"] >= 1000
    assert json.loads(report.read_text())["acked"] == ROWS
