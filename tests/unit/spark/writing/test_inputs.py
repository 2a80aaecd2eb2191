"""The end of a task's rows is told from rows that Spark has cut off."""

import os
import socket
from pathlib import Path

import pytest

from dataproxy.errors import TransportError
from dataproxy.spark.writing.blocks import whole_blocks
from dataproxy.spark.writing.inputs import is_cut_off, to_the_end


@pytest.fixture
def spark_side():
    """Return both sides of a connection: Spark's, and the worker's as a file."""
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.makefile("rb") as source:
        yield ours, source


def worker(source, work):
    """Call a function below a function that looks like the main function of PySpark's worker."""
    names = {"__name__": "pyspark.worker", "work": work}
    exec("def main(infile, outfile):\n    return work()", names)
    return names["main"](source, None)


def test_what_is_no_connection_is_not_cut_off_and_keeps_no_descriptor():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb"):
        before = len([*Path("/proc/self/fd").iterdir()])
        assert not any(is_cut_off(source) for _ in range(10))
        assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_connection_that_stays_is_not_cut_off(spark_side):
    ours, source = spark_side
    assert not is_cut_off(source)
    ours.sendall(b"\xff\xff\xff\xfc")
    assert not is_cut_off(source)


def test_a_connection_that_spark_has_ended_is(spark_side):
    ours, source = spark_side
    ours.shutdown(socket.SHUT_WR)
    assert is_cut_off(source)


def test_what_was_read_ahead_is_not_lost(spark_side):
    ours, source = spark_side
    ours.sendall(b"rows, and the word for the end")
    ours.shutdown(socket.SHUT_WR)
    assert source.read(4) == b"rows"
    assert not is_cut_off(source)
    source.read()
    assert is_cut_off(source)


def test_a_file_is_no_connection(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"")
    with path.open("rb") as source:
        assert not is_cut_off(source)


def test_rows_that_were_cut_off_are_an_error_behind_the_last_of_them(spark_side):
    ours, source = spark_side
    assert worker(source, lambda: list(to_the_end(iter("ab")))) == ["a", "b"]
    ours.shutdown(socket.SHUT_WR)
    found = []
    with pytest.raises(TransportError, match="Spark ended the input of this task early"):
        worker(source, lambda: found.extend(to_the_end(iter("ab"))))
    assert found == ["a", "b"]


def test_outside_of_a_worker_the_end_is_the_end():
    assert list(to_the_end(iter("ab"))) == ["a", "b"]
    assert list(whole_blocks(iter([]))) == []
