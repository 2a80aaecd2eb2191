"""Spark jobs that run in a process of their own, since they need a JVM or an environment of their own."""

import sys
from pathlib import Path


def session(master, **settings):
    """Return a small session."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for name, value in {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", **settings}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def executor_lost():
    """End the executor that runs this task."""
    import os
    import signal
    import time

    daemon = Path("/proc", str(os.getppid()), "stat").read_text()  # the executor is the daemon's parent
    os.kill(int(daemon.rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
    time.sleep(60)  # whoever reads this worker's rows is gone


def worker_killed():
    """End this Python worker."""
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def task_failed():
    """Fail this task."""
    raise RuntimeError("lost on purpose")


def once(lose):
    """Return a function that hands on a partition's rows and then, in one attempt of one partition, loses it."""

    def pieces(batches):
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context.attemptNumber() == context.partitionId() == 0:
            lose()

    return pieces


def cancel(spark, write, begun):
    """Write without an end, and cancel the job once rows are under way."""
    import threading
    import time

    def endless(batches):
        import itertools

        import pyarrow as pa
        from pyspark import TaskContext

        partition = TaskContext.get().partitionId()
        for number in itertools.count(0, 1000):
            if number == 40_000:  # 40 MB: more than pipes and buffers hold, so that some rows have arrived
                Path(begun, str(partition)).touch()
            rows = [f"{partition}-{row:0>1000}" for row in range(number, number + 1000)]
            yield pa.record_batch([rows], names=["value"])
            time.sleep(0.01)

    def end():
        while len(list(begun.iterdir())) < 2:
            time.sleep(0.05)
        spark.sparkContext.cancelJobGroup("endless")

    begun.mkdir()
    threading.Thread(target=end, daemon=True).start()
    spark.sparkContext.setJobGroup("endless", "a write without end")
    try:
        write(spark.range(0, 2, 1, 2).selectExpr("cast(id as string) as value").mapInArrow(endless, "value string"))
    except Exception as error:
        print("cancelled:", "cancel" in str(error).lower())
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def cluster(target, folder):
    """Write 20,000 rows from executors that are processes of their own, and again while they come to harm."""
    from dataproxy.spark import register

    small = {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2"}
    spark = session("local-cluster[2,1,1024]", **small)
    register(spark)
    df = spark.range(0, 20_000, 1, 4).selectExpr("cast(id as string) as value", "concat('c', id % 2) as stream_id")

    def write(rows, report, **options):
        options = {"target": target, "groupId": "cluster", "reportFile": str(Path(folder, report)), **options}
        rows.write.format("dataproxy").mode("append").options(**options).save()

    write(df, "well")
    for lose in (task_failed, worker_killed, executor_lost):
        write(df.drop("stream_id").mapInArrow(once(lose), "value string"), lose.__name__, streamId=lose.__name__)
    cancel(
        spark, lambda rows: write(rows, "cancelled", streamId="cancelled", bufferBytes="1MiB"), Path(folder, "begun")
    )
    half = f"{target},127.0.0.1:1"  # nobody listens at the second one
    write(df.drop("stream_id"), "after", streamId="after", target=half)
    write(df.drop("stream_id").limit(10), "quiet", streamId="quiet", target=half, reportLog="false")
    spark.stop()


def speculation(master, target, report, arrived):
    """Write where the first attempt of partition 0 stays behind, until its copy has won.

    The copy waits for the file ``arrived``, which tells that rows of the first attempt are out.
    """
    speculative = {"interval": "100ms", "quantile": "0.25", "multiplier": "1.1", "efficiency.enabled": "false"}
    settings = {f"spark.speculation.{name}": value for name, value in speculative.items()}
    settings |= {"spark.speculation": "true", "spark.executor.memory": "512m", "spark.executor.cores": "1"}
    spark = session(master, **settings, **{"spark.sql.execution.arrow.maxRecordsPerBatch": "100"})

    def staying_behind(batches):
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        first = context.attemptNumber() == 0
        while not first and not Path(arrived).exists():
            time.sleep(0.05)
        yield from batches
        if first and context.partitionId() == 0:
            time.sleep(200)  # Spark ends this attempt when the copy on the other host is done

    rows = spark.range(0, 16_000, 1, 4).selectExpr("lpad(id, 200, '0') as value")  # more than pipes and buffers hold
    df = rows.mapInArrow(staying_behind, "value string")
    options = {"target": target, "groupId": "speculation", "streamId": "s", "reportFile": report}
    df.write.format("dataproxy").mode("append").options(**options).save()
    spark.stop()


def numbered(rows):
    """Return rows of 200 characters: more than pipes and buffers hold, so that some arrive while others are held."""
    return [f"{row:0200}" for row in range(rows)]


def held(flag, first):
    """Return a function that hands on rows in small pieces, from row ``first`` on only when the flag is gone."""

    def pieces(batches):
        import time

        for batch in batches:
            for start in range(0, batch.num_rows, 50):
                piece = batch.slice(start, 50)
                while int(piece.column("value")[0].as_py()) >= first and Path(flag).exists():
                    time.sleep(0.05)
                yield piece

    return pieces


def batch_rows(spark, rows, flag, first):
    """Return a DataFrame of numbered rows in one partition, with ids, part of which is held while there is a flag."""
    df = spark.range(0, rows, 1, 1).selectExpr("lpad(id, 200, '0') as value", "concat('id-', id) as msg_id")
    return df.mapInArrow(held(flag, first), df.schema)


def write_batch(df, target, stream):
    """Write a batch; the stream named ``known`` with the ids of the rows, others without."""
    options = {"target": target, "groupId": "driver", "streamId": stream}
    rows = df if stream == "known" else df.drop("msg_id")
    rows.write.format("dataproxy").mode("append").options(**options).save()


def start_query(spark, lines, checkpoint, flag, first, target):
    """Start a query over files of numbered rows, one file for each micro-batch."""
    read = spark.readStream.option("maxFilesPerTrigger", 1).text(lines).mapInArrow(held(flag, first), "value string")
    options = {"target": target, "groupId": "driver", "streamId": "stream", "checkpointLocation": checkpoint}
    return read.writeStream.format("dataproxy").options(**options).trigger(availableNow=True).start()


def driver(master, target, folder, rows, first, *streams):
    """Begin batch jobs and a query, as named by their streams, none of which ends, for this driver is killed."""
    import threading

    from dataproxy.spark import register

    small = {"spark.executor.memory": "512m", "spark.sql.execution.arrow.maxRecordsPerBatch": "100"}
    spark = session(master, **small)
    register(spark)
    flag, first = str(Path(folder, "flag")), int(first)
    df = batch_rows(spark, int(rows), flag, first)

    def begin(stream):
        spark.createDataFrame([(1,)], "x int")  # gives the thread a session, without which it finds no formats
        write_batch(df, target, stream)

    for stream in streams:
        if stream == "stream":
            start_query(spark, str(Path(folder, "lines")), str(Path(folder, "checkpoint")), flag, first, target)
        else:
            threading.Thread(target=begin, args=(stream,), daemon=True).start()
    threading.Event().wait()


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


def interrupt(spark, options, begun):
    """Write without an end in a thread, and interrupt it by its tag once rows are under way."""
    import threading
    import time

    def endless(batches):
        import itertools

        for batch in batches:
            for number in itertools.count():
                if number == 10:
                    begun.touch()
                yield batch
                time.sleep(0.01)

    def write():
        spark.addTag("endless")
        try:
            rows = df.mapInArrow(endless, "value string").write.format("dataproxy").mode("append")
            rows.options(**options, streamId="interrupted").save()
        except Exception as error:
            print("interrupted:", "OPERATION_CANCELED" in str(error))

    df = spark.range(0, 100, 1, 1).selectExpr("cast(id as string) as value")
    thread = threading.Thread(target=write)
    thread.start()
    while not begun.exists():
        time.sleep(0.02)
    print("operations:", len(spark.interruptTag("endless")))
    thread.join()


def connect(target, folder):
    """Use a Spark Connect server and its client, as a notebook would."""
    from pyspark.sql import SparkSession

    from dataproxy import spark as sink
    from dataproxy.errors import ConfigError
    from pyspark_dataproxy import DefaultSource

    class NotebookSource(DefaultSource):  # has no module to be imported from
        @classmethod
        def name(cls):
            return "from_a_notebook"

    spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    df = spark.range(0, 100, 1, 2).selectExpr("cast(id as string) as value")
    options = {"target": target, "groupId": "connect"}

    def write(name, stream):
        df.write.format(name).mode("append").options(**options, streamId=stream).save()

    write("dataproxy", "found")
    print("counters:", sink.register(spark))
    write("dataproxy", "registered")
    spark.dataSource.register(NotebookSource)
    write("from_a_notebook", "notebook")
    df.createOrReplaceTempView("source")
    listed = ", ".join(f"{name} '{value}'" for name, value in {**options, "streamId": "sql"}.items())
    spark.sql(f"create temporary view sink (value string) using dataproxy options ({listed})")
    spark.sql("insert into sink select * from source")
    each_row = sink.writer(df, **options, streamId="foreach")
    df.foreachPartition(each_row)
    for stream, messages in {"csv": sink.to_messages(df, format="csv"), "json": sink.with_json_value(df)}.items():
        messages.write.format("dataproxy").mode("append").options(**options, streamId=stream).save()
    interrupt(spark, options, Path(folder, "begun"))
    Path(folder, "lines").mkdir()
    Path(folder, "lines", "1.txt").write_text("".join(f"{number}\n" for number in range(100)))
    stream = spark.readStream.text(str(Path(folder, "lines")))
    sink.check(stream, **options, streamId="stream")

    def each(batch, number):
        batch.write.format("dataproxy").mode("append").options(**options, streamId="each").save()

    for name, begun in {
        "stream": stream.writeStream.format("dataproxy").options(**options, streamId="stream"),
        "each": stream.writeStream.foreachBatch(each),
    }.items():
        query = begun.option("checkpointLocation", str(Path(folder, name))).trigger(availableNow=True).start()
        query.awaitTermination(120)
    for asked in (each_row.report, lambda: sink.WriteProgress(spark)):
        try:
            asked()
        except ConfigError as error:
            print(f"not here: {error}")
    try:
        df.write.format("dataproxy").mode("append").options(**options, lingr="1s").save()
    except Exception as error:
        print(f"refused: {error}")
    spark.stop()


JOBS = {"cluster": cluster, "connect": connect, "discovery": discovery, "driver": driver, "speculation": speculation}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
