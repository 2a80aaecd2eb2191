"""A worker's connection to Spark's JVM sends and acknowledges at once, and no other connection is touched."""

import socket
from pathlib import Path

import pytest

from dataproxy.spark.writing import nodelay
from dataproxy.spark.writing.nodelay import no_delay

OPTIONS = [socket.TCP_QUICKACK, socket.TCP_NODELAY]


def read(connection):
    return [connection.getsockopt(socket.IPPROTO_TCP, option) != 0 for option in OPTIONS]


def worker(source):
    """Call `no_delay` below a function that looks like the main function of PySpark's worker."""
    names = {"__name__": "pyspark.worker", "no_delay": no_delay}
    exec("def main(infile, outfile):\n    no_delay()", names)
    names["main"](source, None)


@pytest.fixture
def connections():
    """Yield two connections that delay what they send and what they acknowledge."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as jvm,
        listener.accept()[0],
        socket.create_connection(listener.getsockname()) as other,
        listener.accept()[0],
    ):
        for client in (jvm, other):
            for option in OPTIONS:
                client.setsockopt(socket.IPPROTO_TCP, option, 0)
            assert read(client) == [False, False]
        yield jvm, other


def test_the_connection_to_the_jvm_waits_for_nothing_and_others_are_left_alone(connections):
    jvm, other = connections
    with jvm.makefile("rb") as source:
        worker(source)
    assert read(jvm) == [True, True]
    assert read(other) == [False, False]


def test_outside_of_a_worker_nothing_is_touched(connections):
    no_delay()
    assert [read(one) for one in connections] == [[False, False]] * 2


def test_what_is_no_connection_does_not_matter_and_keeps_no_descriptor(tmp_path):
    left, right = socket.socketpair()
    (tmp_path / "file").touch()
    with left, right, left.makefile("rb") as source, (tmp_path / "file").open("rb") as file:
        before = len([*Path("/proc/self/fd").iterdir()])
        worker(source)
        worker(file)
        assert len([*Path("/proc/self/fd").iterdir()]) == before
        left.sendall(b"x")
        assert right.recv(1) == b"x"


def test_a_system_without_the_option_does_nothing(connections, monkeypatch):
    monkeypatch.setattr(nodelay, "_QUICKACK", None)
    jvm, _ = connections
    with jvm.makefile("rb") as source:
        worker(source)
    assert read(jvm) == [False, False]
