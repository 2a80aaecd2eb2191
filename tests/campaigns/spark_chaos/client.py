"""A client of Spark Connect that writes a batch slowly; SIGTERM stops its session."""

import signal
import sys
import threading
import time

SIGNALS = {signal.SIGTERM}


def slowly(batches):
    """Hand on batches in small pieces with pauses, so that there is a middle to be ended in."""
    for batch in batches:
        for start in range(0, batch.num_rows, 100):
            yield batch.slice(start, 100)
            time.sleep(0.02)


def main(server, target, group, stream, rows):
    """Write rows under the stream's name; the exit status is not zero where the write failed."""
    from pyspark.sql import SparkSession

    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # of all threads: a handler would wait for gRPC
    spark = SparkSession.builder.remote(server).getOrCreate()

    def stop():
        signal.sigwait(SIGNALS)
        spark.stop()

    threading.Thread(target=stop, daemon=True).start()
    df = spark.range(0, int(rows), 1, 4).selectExpr("concat('row-', id) as value").mapInArrow(slowly, "value string")
    options = {"target": target, "groupId": group, "streamId": stream, "runId": stream, "reportLog": "false"}
    df.write.format("dataproxy").mode("append").options(**options).save()


if __name__ == "__main__":
    main(*sys.argv[1:])
