"""Connections within the machine send and acknowledge at once."""

import socket

import pytest

from dataproxy.spark import nodelay
from dataproxy.spark.nodelay import no_delay

OPTIONS = [socket.TCP_QUICKACK, socket.TCP_NODELAY]


def read(connection):
    return [connection.getsockopt(socket.IPPROTO_TCP, option) != 0 for option in OPTIONS]


@pytest.fixture
def connection():
    """Yield a connection that delays what it sends and what it acknowledges."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0],
    ):
        for option in OPTIONS:
            client.setsockopt(socket.IPPROTO_TCP, option, 0)
        assert read(client) == [False, False]
        yield client


def test_connections_within_the_machine_wait_for_nothing(connection):
    no_delay()
    assert read(connection) == [True, True]


def test_other_connections_are_left_alone(connection, monkeypatch):
    monkeypatch.setattr(nodelay, "_WITHIN", ("192.0.2.1",))
    no_delay()
    assert read(connection) == [False, False]


def test_what_is_no_connection_does_not_matter():
    left, right = socket.socketpair()
    with left, right, socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.create_server(("127.0.0.1", 0)):
        no_delay()
        left.sendall(b"x")
        assert right.recv(1) == b"x"


def test_a_system_without_the_option_does_nothing(connection, monkeypatch):
    monkeypatch.setattr(nodelay, "_QUICKACK", None)
    no_delay()
    assert read(connection) == [False, False]
