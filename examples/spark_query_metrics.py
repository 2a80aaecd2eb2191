"""Observability: a query listener that feeds Prometheus from Spark's progress and the sink's own reports.

python examples/spark_query_metrics.py [--port 9100] [--batches 1000] [tcp://host:46801]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from local_hub import target_or_hub
from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
from pyspark.sql.streaming import StreamingQueryListener
from spark_local import command_line, ended, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

BATCHES, PATIENCE = 3, 10.0


class SinkMetrics(StreamingQueryListener):  # type: ignore[misc]  # mypy does not follow pyspark
    """Turn the progress of queries, and the lines of a report file, into metrics.

    A Python sink cannot add to Spark's ``StreamingQueryProgress``, so the sink's counts come from its report file.
    """

    def __init__(self, report: Path, registry: CollectorRegistry) -> None:
        self._report = report
        self._registry = registry
        self._read = 0  # bytes of the report file
        self.batches = Counter("sink_micro_batches", "micro-batches committed", registry=registry)
        self.aborted = Counter("sink_micro_batches_aborted", "micro-batches that failed", registry=registry)
        self.rows = Counter("sink_rows_acknowledged", "rows acknowledged by the proxies", registry=registry)
        self.resent = Counter("sink_rows_resent", "rows of partitions that ran again", registry=registry)
        self.retries = Counter("sink_frames_resent", "frames sent again", registry=registry)
        self.p99 = Gauge("sink_ack_latency_p99_seconds", "ack latency in the last micro-batch", registry=registry)
        self.seconds = Gauge("query_batch_seconds", "duration of the last micro-batch", registry=registry)
        self.active = Gauge("query_active", "queries that run", registry=registry)

    def value(self, name: str) -> float:
        """Return a metric's value now."""
        return self._registry.get_sample_value(name) or 0.0

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Count a running query."""
        self.active.inc()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Add a micro-batch's duration, and the sink's reports since the last one."""
        self.seconds.set(event.progress.batchDuration / 1e3)
        self._take_reports()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing: a query that waits for data has nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Note that a query has ended."""
        self.active.dec()
        self._take_reports()

    def _take_reports(self) -> None:
        if not self._report.exists():
            return
        with self._report.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):  # still being written
                    break
                self._read += len(line)
                found = json.loads(line)
                if found["outcome"] != "committed":
                    self.aborted.inc()
                    continue
                self.batches.inc()
                self.rows.inc(found["acked"])
                self.resent.inc(found["resent_rows"])
                self.retries.inc(found["retries"])
                self.p99.set(found["latency_p99"] or 0)


def run_for(spark: SparkSession, target: str, folder: Path, metrics: SinkMetrics, batches: int) -> None:
    """Run a query until the metrics know of so many micro-batches."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    query = (
        source.selectExpr("cast(value as string) as value")
        .writeStream.format("dataproxy")
        .options(target=target, groupId="clock", streamId="ticks", reportFile=str(folder / "report.jsonl"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    while query.isActive and metrics.value("sink_micro_batches_total") < batches:
        time.sleep(0.05)
    query.stop()
    if query.exception() is not None:
        raise query.exception()
    end = time.monotonic() + PATIENCE  # a listener gets the event of the end later
    while metrics.value("query_active") and time.monotonic() < end:
        time.sleep(0.05)


def main() -> int:
    """Run a query for some micro-batches, serve the metrics meanwhile, and print what Prometheus would get."""
    parser = command_line(__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the metrics, on 127.0.0.1 (default: a free one)")
    parser.add_argument("--batches", type=int, default=BATCHES, help="micro-batches to run (%(default)s)")
    chosen = parser.parse_args()
    registry = CollectorRegistry()
    server, _ = start_http_server(chosen.port, addr="127.0.0.1", registry=registry)
    page = f"http://127.0.0.1:{server.server_port}/metrics"
    sys.stderr.write(f"metrics: {page}\n")
    spark = local_session("query metrics")
    with tempfile.TemporaryDirectory() as name, target_or_hub(chosen.target) as target:
        metrics = SinkMetrics(Path(name, "report.jsonl"), registry)
        spark.streams.addListener(metrics)
        try:
            run_for(spark, target, Path(name), metrics, chosen.batches)
        finally:
            spark.streams.removeListener(metrics)
        with urlopen(page) as answer:
            print(answer.read().decode())
    rows = metrics.value("sink_rows_acknowledged_total")
    server.shutdown()
    server.server_close()
    spark.stop()
    return 0 if rows >= chosen.batches * 100 else 1


if __name__ == "__main__":
    sys.exit(ended(main))
