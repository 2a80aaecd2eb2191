"""What a process pays: memory at full speed, the import, and jobs in Spark."""

from benchmarks.contest import Contestant
from benchmarks.lines.describe import PORT, PRODUCER, at_least, at_most, module

__all__ = ["COUNTING", "IMPORT", "MEMORY", "SPARK", "SPARK_SINK"]

MEMORY = tuple(
    Contestant(
        f"memory, {mode}",
        "memory",
        "ours",
        module("clients.memory", "--mode", mode, *PORT, "--seconds", "{seconds}"),
        server="sink",
        metric="excess_mib",
        needs=PRODUCER,
        marks=(at_most("buffer limit + 32 MiB", "excess_mib", 32),),
        every=2,
    )
    for mode in ("send_nowait", "send_batch")
)
IMPORT = (
    Contestant(
        "import dataproxy",
        "import",
        "ours",
        module("clients.imports"),
        metric="import_ms",
        needs=PRODUCER,
        marks=(at_most("40 ms", "import_ms", 40),),
        every=3,
        quick=True,
    ),
)
SPARK_JOB = module("clients.spark_job", *PORT)
COUNTING, SPARK_SINK = "counting writer", "dataproxy sink"
SPARK = tuple(
    line
    for table in ("100 B strings", "ten mixed columns")
    for line in (
        Contestant(f"{COUNTING}, {table}", "spark", "floor", SPARK_JOB, server="sink", needs=("pyspark",)),
        Contestant(
            f"{SPARK_SINK}, {table}",
            "spark",
            "ours",
            SPARK_JOB,
            server="sink",
            floor=f"{COUNTING}, {table}",
            needs=("pyspark", "dataproxy.spark.sink"),
            marks=(at_least("0.9 of the counting writer", "share", 0.9),),
        ),
    )
)
