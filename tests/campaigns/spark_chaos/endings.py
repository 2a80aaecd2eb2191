"""Rounds in which more ends than a task: sessions that stop, attempts that run out, stages that run again, copies."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.campaigns.spark_chaos.laws import judge
from tests.campaigns.spark_chaos.processes import executors, kill
from tests.campaigns.spark_chaos.rounds import GROUP, Round, read_slowly, run_query, slowly, write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from dataproxy.hub import Hub

__all__ = ["Begin", "Ended", "limited_round", "speculated_round", "stages_round", "stopped_round"]

Begin = "Callable[..., SparkSession]"  # starts a session: master, settings

_STOPS = 3  # of one query
_ATTEMPTS = 60
_PATIENCE = 240.0
_FAILURES = 3  # what a task is allowed in the rounds about it
_PARTITIONS = 4
_ROWS = 4_000  # of one partition, 200 characters each: more than pipes and buffers hold
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.efficiency.enabled": "false",
    "spark.executor.cores": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}


@dataclass
class Ended(Round):
    """A round with what was ended in it, by kind."""

    ends: dict[str, int] = field(default_factory=dict)
    filtered: bool = True

    def count(self, kind: str, number: int = 1) -> None:
        """Count ends of a kind."""
        if number:
            self.ends[kind] = self.ends.get(kind, 0) + number

    def close(self, hub: Hub, source: set[bytes]) -> None:
        """Judge what the hub has of this round's stream."""
        self.rows = len(source)
        records = hub.records(GROUP, self.name)
        self.surplus, found = judge(records, source, filtered=self.filtered)
        self.violations += [f"{self.name}: {text}" for text in found]


def _stored(hub: Hub, name: str) -> int:
    """Return how many rows of a stream a hub has."""
    count = hub.counts().get((GROUP, name))
    return 0 if count is None else count.records


def _wait(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + _PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


def stopped_round(
    begin: Any, hub: Hub, name: str, folder: Path, *, masters: tuple[str, ...], filtered: bool, kind: str
) -> Ended:
    """Stop the session some times in the middle of a query, each time go on in another, with the next of `masters`."""
    result = Ended(name, filtered=filtered)
    lines, source = write_files(folder, name)
    resized = len(set(masters)) > 1
    options = {
        "target": hub.target,
        "groupId": GROUP,
        "streamId": name,
        "reportLog": "false",
        "checkpointLocation": str(folder / f"{name}-checkpoint"),
    }
    if resized:  # another number of cores is another number of partitions; no two lines are equal
        options["idFrom"] = "value"
    for attempt, master in zip(range(_ATTEMPTS), itertools.cycle(masters), strict=False):
        # Files are divided by what the cores have to do each, so that other parallelism means other partitions.
        spark = begin(master, **{"spark.sql.files.openCostInBytes": "1"})
        stopper = threading.Thread(target=_stop_in_the_middle, args=(spark, hub, result, kind), daemon=True)
        well = run_query(read_slowly(spark, lines), options, stopper.start if attempt < _STOPS else None)
        if stopper.ident is not None:
            stopper.join(_PATIENCE)
        with contextlib.suppress(Exception):  # it may be stopped already
            spark.stop()
        if well:
            result.close(hub, source)
            return result
        result.failures += 1
    result.violations.append(f"{name}: no query of {_ATTEMPTS} ended well")
    return result


def _stop_in_the_middle(spark: SparkSession, hub: Hub, result: Ended, kind: str) -> None:
    """Stop the session when more rows of the running query have arrived, and count it if the query was running."""
    before = _stored(hub, result.name)
    if _wait(lambda: _stored(hub, result.name) > before or not spark.streams.active) and spark.streams.active:
        result.count(kind)
        spark.stop()


def _padded(spark: SparkSession) -> tuple[Any, set[bytes]]:
    """Return a DataFrame of long rows, and their bodies."""
    total = _PARTITIONS * _ROWS
    df = spark.range(0, total, 1, _PARTITIONS).selectExpr("lpad(id, 200, '0') as value")
    return df, {f"{number:0200}".encode() for number in range(total)}


def _write(df: Any, hub: Hub, name: str, **options: str) -> Exception | None:
    """Write a batch under its name; return the error that ended it."""
    given = {"target": hub.target, "groupId": GROUP, "streamId": name, "reportLog": "false", "runId": name, **options}
    try:
        df.write.format("dataproxy").mode("append").options(**given).save()
    except Exception as error:
        return error
    return None


def limited_round(begin: Any, hub: Hub, name: str, folder: Path, *, filtered: bool) -> Ended:
    """Let tasks fail as often as they may: once a time less, and the job ends well; once that often, and it fails.

    The job that failed is written again under its name.
    """
    result = Ended(name, filtered=filtered)
    flag = folder / f"{name}-healed"
    spark = begin(f"local[2,{_FAILURES}]")
    rows, source = _padded(spark)
    df = rows.mapInArrow(_failing(str(flag), folder / f"{name}-attempts", limit=_FAILURES - 1), "value string")
    if error := _write(df, hub, name):
        result.violations.append(f"{name}: {_FAILURES - 1} failures of a task ended the job: {error}")
    result.count("failed attempt", len(list(folder.glob(f"{name}-attempts-*"))))
    result.close(hub, source)
    again = Ended(f"{name}-gone", filtered=filtered)
    df = rows.mapInArrow(_failing(str(flag), folder / f"{again.name}-attempts", limit=_FAILURES), "value string")
    if _write(df, hub, again.name) is None:
        result.violations.append(f"{name}: {_FAILURES} failures of a task did not end the job")
    tried = len(list(folder.glob(f"{again.name}-attempts-*")))
    if tried < _FAILURES:
        result.violations.append(f"{name}: {tried} attempts were made of {_FAILURES}")
    result.count("failed attempt", tried)
    result.count("job given up")
    result.failures += 1
    flag.touch()
    if error := _write(df, hub, again.name):
        result.violations.append(f"{name}: written again, the job failed: {error}")
    again.close(hub, source)
    result.rows += again.rows
    result.surplus += again.surplus
    result.violations += again.violations
    spark.stop()
    return result


def _failing(flag: str, seen: Path, *, limit: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that fails partition 1 after half of its rows, in its first `limit` attempts without a flag."""
    marks, half = str(seen), _ROWS // 2

    def pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        bad = context.partitionId() == 1 and context.attemptNumber() < limit and not Path(flag).exists()
        passed = 0
        for batch in batches:
            yield batch
            passed += batch.num_rows
            if bad and passed >= half:
                Path(f"{marks}-{context.attemptNumber()}").touch()
                raise RuntimeError("failed on purpose")

    return pieces


def stages_round(begin: Any, hub: Hub, name: str, folder: Path, dice: random.Random, *, filtered: bool) -> Ended:
    """Write what comes out of a shuffle while executors die: what they held is made again, by another run of its stage.

    Tasks that had ended well are not run again: the stage is no barrier.
    """
    result = Ended(name, filtered=filtered)
    spark = begin("local-cluster[2,1,1024]", **{"spark.stage.maxConsecutiveAttempts": "100"})
    rows, source = _padded(spark)
    df = rows.repartition(24, "value").sortWithinPartitions("value").mapInArrow(slowly, "value string")
    tracker, again, done = spark.sparkContext.statusTracker(), set(), threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None and info.currentAttemptId > 0:
                    again.add((stage, info.currentAttemptId))

    def end_executors() -> None:
        for share in (10, 3):
            _wait(lambda share=share: done.is_set() or _stored(hub, name) > len(source) / share)
            if not done.is_set() and (found := executors()):
                result.count("executor", int(kill(dice.choice(found))))

    threads = [threading.Thread(target=work, daemon=True) for work in (look, end_executors)]
    for thread in threads:
        thread.start()
    for _ in range(_ATTEMPTS):
        if _write(df, hub, name) is None:
            break
        result.failures += 1
    else:
        result.violations.append(f"{name}: no job of {_ATTEMPTS} ended well")
    done.set()
    for thread in threads:
        thread.join()
    result.count("stage run again", len(again))
    result.close(hub, source)
    spark.stop()
    return result


def speculated_round(begin: Any, master: str, hub: Hub, name: str, folder: Path, *, filtered: bool) -> Ended:
    """Let the first attempt of a partition stay behind once it has sent rows, until its copy elsewhere has won."""
    result = Ended(name, filtered=filtered)
    flag = folder / f"{name}-arrived"
    spark = begin(master, **_SPECULATION)
    rows, source = _padded(spark)
    late = threading.Thread(target=_touch_when_rows_arrive, args=(hub, name, flag), daemon=True)
    late.start()
    known = hub.stats()["duplicates"]
    if error := _write(rows.mapInArrow(_staying_behind(str(flag)), "value string"), hub, name):
        result.violations.append(f"{name}: the job failed: {error}")
    late.join(_PATIENCE)
    spark.stop()
    result.close(hub, source)
    copied = hub.stats()["duplicates"] - known if filtered else result.surplus
    result.count("speculative copy", int(copied > 0))
    if not copied:
        result.violations.append(f"{name}: no row was sent by two attempts")
    return result


def _touch_when_rows_arrive(hub: Hub, name: str, flag: Path) -> None:
    """Touch a file when a thousand rows of the first partition are in the hub."""
    rows = (record for record in hub.records(GROUP, name, follow=True) if int(record.body) < _ROWS)
    for _ in itertools.islice(rows, 1000):
        pass
    flag.touch()


def _staying_behind(flag: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that never ends in the first attempt of partition 0, whose copy waits for the flag."""

    def pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        first = context.attemptNumber() == 0
        while not first and not Path(flag).exists():
            time.sleep(0.05)
        yield from batches
        if first and context.partitionId() == 0:
            time.sleep(200)  # Spark ends this attempt when the copy on the other host is done

    return pieces
