"""A hub whose disk is full: it refuses with code 114, runs on, and takes everything when there is room again."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from dataproxy import Producer
from dataproxy.cli.hub.client import HubClient
from dataproxy.hub import open_store

SMALL = 4_000_000
BODY = 20_000


@pytest.fixture
def hub(tmp_path) -> Iterator[tuple[subprocess.Popen, dict]]:
    """Give a durable hub in a process of its own, with its addresses."""
    command = [sys.executable, "-m", "dataproxy", "hub", "--store", str(tmp_path / "store"), "--print-urls"]
    command += ["--port", "0", "--manager-port", "0", "-o", "compress_entries=false"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=60)


def limit_files(process: subprocess.Popen, most: int) -> None:
    """Make every file of the hub end at ``most`` bytes, as a full disk would."""
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, hard))


def body(number: int) -> bytes:
    return b"%d " % number + os.urandom(BODY)


def wait_for_refusals(client: HubClient, at_least: int) -> dict:
    """Return the hub's counters once so many requests were refused with 114."""
    deadline = time.monotonic() + 60
    while True:
        stats = client.get("/hub/stats")
        if stats["refused"].get("114", 0) >= at_least:
            return stats
        assert time.monotonic() < deadline, stats
        time.sleep(0.005)


def test_a_full_disk_is_refused_with_114_and_everything_arrives_when_there_is_room(hub, tmp_path):
    process, urls = hub
    client = HubClient(urls["manager_url"])
    sent = [body(number) for number in range(600)]
    backoff = {"retry_backoff": 0.01, "retry_backoff_max": 0.2}
    with Producer(urls["target"], group_id="g", batch_bytes=64 << 10, linger=0.0, **backoff) as producer:
        limit_files(process, SMALL)
        deliveries = [producer.send("s", one) for one in sent]
        stats = wait_for_refusals(client, 10)
        assert stats["store"]["failures"] > 0
        assert "File too large" in stats["store"]["last_error"]
        acked = [one for one, delivery in zip(sent, deliveries, strict=True) if delivery.done()]
        assert len(acked) < len(sent)
        # Readers see what is stored, nothing of the refused commits, and the hub answers all along.
        with open_store(tmp_path / "store") as store:
            assert set(acked) <= {record.body for record in store.records("g", "s")} <= set(sent)
        assert process.poll() is None
        limit_files(process, resource.RLIM_INFINITY)
        report = producer.flush()
    assert (report.delivered, report.failed, report.expired) == (len(sent), 0, 0)
    with open_store(tmp_path / "store") as store:
        assert sorted(record.body for record in store.records("g", "s")) == sorted(sent)
        assert store.counts()["g", "s"].records == len(sent)
        [log] = store.logs()
        assert (log.first_offset, log.next_offset) == (0, log.entries)
