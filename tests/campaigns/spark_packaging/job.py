"""A small write, run in an environment of the laboratory's; says where tasks find the package."""

import contextlib
import json
import sys

from pyspark.sql import SparkSession


def places(batches):
    """Yield which interpreter, package and system libraries a task sees; the package may be missing."""
    import ctypes
    import importlib.util

    import pyarrow as pa

    loaded = []
    for library in ("libsnappy.so.1", "liblmdb.so.0"):
        with contextlib.suppress(OSError):
            loaded.append(ctypes.CDLL(library)._name)
    for _ in batches:
        found = importlib.util.find_spec("dataproxy")
        yield pa.record_batch(
            [[sys.prefix], [str(found and found.origin)], [" ".join(loaded)]], names=["prefix", "package", "libraries"]
        )


def main(target, settings):
    """Write 1,000 rows through a local cluster of two executors; print one line of JSON."""
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    for name, value in json.loads(settings).items():
        builder = builder.config(name, value)
    spark = builder.config("spark.executor.memory", "512m").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    row = spark.range(1).mapInArrow(places, "prefix string, package string, libraries string").collect()[0]
    df = spark.range(0, 1000, 1, 4).selectExpr("cast(id as string) as value")
    error = ""
    try:
        options = {"target": target, "groupId": "packaging", "streamId": "s"}
        df.write.format("dataproxy").mode("append").options(**options).save()
    except Exception as failure:
        error = str(failure)
    print(json.dumps({**row.asDict(), "error": error}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
