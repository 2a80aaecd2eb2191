"""One batch job, or one streaming query, under a killer; then the laws."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.campaigns.spark_chaos.laws import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dataproxy.hub import Hub
    from tests.campaigns.spark_chaos.killer import Killer

__all__ = ["Round", "batch_round", "idle_round", "read_slowly", "run_query", "slowly", "stream_round", "write_files"]

GROUP = "chaos"
PARTITIONS = 6
ROWS = 2_000  # of one partition
FILES = 4
LINES = 3_000
_ATTEMPTS = 60  # of a job or query as a whole
_SECONDS = 240
_IDLE = 180.0  # seconds in which Spark ends its idle Python workers; it lets them wait for one minute


@dataclass
class Round:
    """What one round saw."""

    name: str
    rows: int = 0
    surplus: int = 0
    failures: int = 0  # jobs and queries that ended with an error, which were begun again
    violations: list[str] = field(default_factory=list)


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand on batches in small pieces with pauses, so that there is a middle to be killed in."""
    for batch in batches:
        for start in range(0, batch.num_rows, 100):
            yield batch.slice(start, 100)
            time.sleep(0.01)


def batch_round(spark: SparkSession, hub: Hub, killer: Killer, name: str, folder: Path, *, filtered: bool) -> Round:
    """Write a DataFrame until the job succeeds; a job that failed has told so, and is begun again elsewhere."""
    result = Round(name, rows=PARTITIONS * ROWS)
    df = spark.range(0, result.rows, 1, PARTITIONS).selectExpr("concat('row-', id) as value")
    slow = df.mapInArrow(slowly, "value string")
    source = {f"row-{number}".encode() for number in range(result.rows)}
    for attempt in range(_ATTEMPTS):
        stream, report = f"{name}-{attempt}", folder / f"{name}-{attempt}.json"
        options = {"target": hub.target, "groupId": GROUP, "streamId": stream, "reportFile": str(report)}
        options["reportLog"] = "false"
        try:
            with killer:
                slow.write.format("dataproxy").mode("append").options(**options).save()
        except Exception as error:
            result.failures += 1
            result.violations += [f"{name}: {word}" for word in _untrue(error)]
            continue
        accounting = json.loads(report.read_text())
        if not accounting["rows"] == accounting["acked"] == result.rows:
            result.violations.append(f"{name}: the job ended well with the accounting {accounting!r}")
        result.surplus, found = judge(hub.records(GROUP, stream), source, filtered=filtered)
        result.violations += [f"{name}: {text}" for text in found]
        return result
    result.violations.append(f"{name}: no job of {_ATTEMPTS} ended well")
    return result


def stream_round(spark: SparkSession, hub: Hub, killer: Killer, name: str, folder: Path, *, filtered: bool) -> Round:
    """Run a query over files until all is written, from its checkpoint whenever it ended with an error."""
    lines, source = write_files(folder, name)
    result = Round(name, rows=len(source))
    read = read_slowly(spark, lines)
    options = {
        "target": hub.target,
        "groupId": GROUP,
        "streamId": name,
        "reportLog": "false",
        "checkpointLocation": str(folder / f"{name}-checkpoint"),
    }
    for _ in range(_ATTEMPTS):
        with killer:
            well = run_query(read, options)
        if well:
            result.surplus, found = judge(hub.records(GROUP, name), source, filtered=filtered)
            result.violations += [f"{name}: {text}" for text in found]
            return result
        result.failures += 1
    result.violations.append(f"{name}: no query of {_ATTEMPTS} ended well")
    return result


def write_files(folder: Path, name: str) -> tuple[Path, set[bytes]]:
    """Write the files of a query, one for each micro-batch; return their folder, and the rows in them."""
    lines = folder / f"{name}-lines"
    lines.mkdir()
    for number in range(FILES):
        text = "".join(f"row-{row}\n" for row in range(number * LINES, (number + 1) * LINES))
        (lines / f"{number}.txt").write_text(text)
    return lines, {f"row-{number}".encode() for number in range(FILES * LINES)}


def read_slowly(spark: SparkSession, lines: Path) -> DataFrame:
    """Return a stream over the files."""
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(lines)).mapInArrow(slowly, "value string")


def run_query(read: DataFrame, options: dict[str, str], begun: Callable[[], object] | None = None) -> bool:
    """Run the query over what is there, and call `begun` once it runs; tell whether it ended well."""
    query = None
    try:
        query = read.writeStream.format("dataproxy").options(**options).trigger(availableNow=True).start()
        if begun is not None:
            begun()
        end = time.monotonic() + _SECONDS
        # Nobody tells who waits for a query that its session was stopped: Spark's own notice fails then.
        while not (ended := query.awaitTermination(1)) and time.monotonic() < end and not _is_stopped(read):
            pass
        return bool(ended)
    except Exception:  # the query's error, whatever it was; the laws judge what it left
        return False
    finally:
        if query is not None:
            with contextlib.suppress(Exception):  # its session may have ended
                query.stop()


def _is_stopped(df: DataFrame) -> bool:
    return bool(df.sparkSession.sparkContext._jsc is None or df.sparkSession.sparkContext._jsc.sc().isStopped())


def idle_round(spark: SparkSession, hubs: tuple[Hub, ...], name: str) -> Round:
    """Write once more in peace, then wait until Spark has ended its idle workers.

    Every connection must end with its worker, while the session lives, and as a connection ends that nobody broke.
    """
    result = Round(name, rows=PARTITIONS * len(hubs))
    df = spark.range(0, PARTITIONS, 1, PARTITIONS).selectExpr("concat('row-', id) as value")
    before = [hub.stats()["closed"] for hub in hubs]
    for hub in hubs:
        options = {"target": hub.target, "groupId": GROUP, "streamId": name, "reportLog": "false"}
        df.write.format("dataproxy").mode("append").options(**options).save()
    end = time.monotonic() + _IDLE
    while any(hub.stats()["connections"] for hub in hubs) and time.monotonic() < end:
        time.sleep(0.5)
    for hub, closed in zip(hubs, before, strict=True):
        stats = hub.stats()
        if stats["connections"]:
            result.violations.append(f"{name}: {stats['connections']} connections outlived the idle workers")
        broken = {why: count - closed[why] for why, count in stats["closed"].items() if why != "peer"}
        if any(broken.values()):
            result.violations.append(f"{name}: connections of idle workers ended so: {broken!r}")
    return result


def _untrue(error: Exception) -> list[str]:
    """Return what is wrong with the way a job failed: kills may end it, mistakes of ours may not."""
    text = str(error)
    return [f"failed with {word}" for word in ("do not balance", "LocalProtocolError") if word in text]
