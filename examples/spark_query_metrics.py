"""Observability: a query listener that feeds Prometheus from Spark's progress and the sink's own reports.

python examples/spark_query_metrics.py [tcp://host:46801]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from local_hub import target_or_hub
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from pyspark.sql.streaming import StreamingQueryListener
from spark_local import local_session

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

BATCHES, PATIENCE = 3, 120.0


class SinkMetrics(StreamingQueryListener):  # type: ignore[misc]  # mypy does not follow pyspark
    """Turn the progress of queries, and the lines of a report file, into metrics.

    Spark lets no Python sink add to ``StreamingQueryProgress``; what the sink counted is in its report file.
    """

    def __init__(self, report: Path, registry: CollectorRegistry) -> None:
        self._report = report
        self._read = 0  # bytes of the report file
        self.batches = Counter("sink_micro_batches", "micro-batches committed", registry=registry)
        self.rows = Counter("sink_rows_acknowledged", "rows acknowledged by the proxies", registry=registry)
        self.resent = Counter("sink_rows_resent", "rows of partitions that ran again", registry=registry)
        self.retries = Counter("sink_frames_resent", "frames sent again", registry=registry)
        self.p99 = Gauge("sink_ack_latency_p99_seconds", "ack latency in the last micro-batch", registry=registry)
        self.seconds = Gauge("query_batch_seconds", "duration of the last micro-batch", registry=registry)
        self.active = Gauge("query_active", "queries that run", registry=registry)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Count a query that runs."""
        self.active.inc()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Take over a micro-batch's duration, and what the sink has reported since the last one."""
        self.seconds.set(event.progress.batchDuration / 1e3)
        self._take_reports()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing: a query that waits for data has nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Count a query that runs no longer."""
        self.active.dec()
        self._take_reports()

    def _take_reports(self) -> None:
        if not self._report.exists():
            return
        with self._report.open("rb") as file:
            file.seek(self._read)
            for line in file:
                self._read += len(line)
                found = json.loads(line)
                self.batches.inc()
                self.rows.inc(found["acked"])
                self.resent.inc(found["resent_rows"])
                self.retries.inc(found["retries"])
                self.p99.set(found["latency_p99"] or 0)


def main() -> int:
    """Run a query for some micro-batches and print the metrics; a service would call start_http_server(9100)."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    spark = local_session("query metrics")
    registry = CollectorRegistry()
    with tempfile.TemporaryDirectory() as name, target_or_hub(given) as target:
        report = Path(name, "report.jsonl")
        metrics = SinkMetrics(report, registry)
        spark.streams.addListener(metrics)
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
        query = (
            source.selectExpr("cast(value as string) as value")
            .writeStream.format("dataproxy")
            .options(target=target, groupId="clock", streamId="ticks", reportFile=str(report))
            .option("checkpointLocation", str(Path(name, "checkpoint")))
            .start()
        )
        end = time.monotonic() + PATIENCE
        while registry.get_sample_value("sink_micro_batches_total") < BATCHES and time.monotonic() < end:
            time.sleep(0.05)
        query.stop()
        spark.streams.removeListener(metrics)
        print(generate_latest(registry).decode())
        rows = registry.get_sample_value("sink_rows_acknowledged_total") or 0
    spark.stop()
    return 0 if rows >= BATCHES * 100 else 1


if __name__ == "__main__":
    sys.exit(main())
