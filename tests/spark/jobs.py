"""Spark jobs that run in a process of their own, since they need a JVM or an environment of their own."""

import sys


def session(master, **settings):
    """Return a small session."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for name, value in {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", **settings}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def cluster(target, report):
    """Write 20,000 rows from executors that are processes of their own, the first time without one of them."""
    from dataproxy.spark import register

    spark = session("local-cluster[1,2,1024]", **{"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2"})
    register(spark)
    df = spark.range(0, 20_000, 1, 4).selectExpr("cast(id as string) as value", "concat('c', id % 2) as stream_id")
    options = {"target": target, "groupId": "cluster", "reportFile": report}
    df.write.format("dataproxy").mode("append").options(**options).save()
    spark.stop()


def discovery(folder):
    """Look for formats where the package's core cannot be imported."""
    spark = session("local[1]")
    df = spark.range(3).selectExpr("cast(id as string) as value")
    df.write.format("bystander").mode("append").option("folder", folder).save()
    try:
        df.write.format("dataproxy").mode("append").option("target", "tcp://127.0.0.1:1").save()
    except Exception as error:
        print(f"refused: {error}")
    spark.stop()


if __name__ == "__main__":
    {"cluster": cluster, "discovery": discovery}[sys.argv[1]](*sys.argv[2:])
