"""Replay the flights as a stream, kill its process in the middle, and go on from the checkpoint.

As a program it is one process of the stream, which `flights_demo.py` starts and kills.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flights_source import replay, start_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from dataproxy.hub import Hub

GROUP = "replay"
PATIENCE = 300.0


class ProcessError(Exception):
    """A process of the demo has ended by itself, or took too long."""


def write_stream(spark: SparkSession, target: str, folder: Path) -> None:
    """Write the stream from its checkpoint until every file is written."""
    query = (
        replay(spark, folder / "slices")
        .writeStream.format("dataproxy")
        .option("target", target)
        .option("groupId", GROUP)
        .option("reportLog", "false")
        .option("packSeconds", 3600)  # flights of one hour share a frame
        .option("reportFile", str(folder / "stream.jsonl"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def stream_with_a_kill(
    spark: SparkSession, hub: Hub, folder: Path, kill_at: int, mark: Callable[[str], object]
) -> tuple[int, int]:
    """Run the stream in its own process, kill that when the hub has ``kill_at`` rows, and finish the stream here.

    Returns the rows in the hub at the kill, and the finished micro-batches.  Raises ProcessError when the process
    ends by itself.
    """
    words = [sys.executable, str(Path(__file__)), hub.target, str(folder)]
    with subprocess.Popen(words, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_rows(hub, kill_at, process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # also Spark's JVM and Python workers
        rows = int(hub.stats()["records"])
        mark("killed; goes on from its checkpoint")
    report = folder / "stream.jsonl"
    batches = len(report.read_text().splitlines()) if report.exists() else 0
    write_stream(spark, hub.target, folder)
    return rows, batches


def wait_for_rows(hub: Hub, rows: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the hub has so many rows.  Raises ProcessError when the process ends first, or time is over."""
    end = time.monotonic() + PATIENCE
    while hub.stats()["records"] < rows:
        if process.poll() is not None or time.monotonic() > end:
            raise ProcessError(f"the stream's process ended with status {process.returncode}, or took too long")
        time.sleep(0.01)


def main() -> int:
    """Run one process of the stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", help="proxies as tcp://host:port")
    parser.add_argument("folder", type=Path, help="has the slices of the stream, and gets its checkpoint")
    chosen = parser.parse_args()
    spark = start_spark(chosen.folder)
    write_stream(spark, chosen.target, chosen.folder)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
