"""Proxies of a write that are asked for a connection."""

import socket

import pytest

from dataproxy.spark.planning import target
from dataproxy.types import Endpoint


@pytest.fixture
def dead():
    """Return an endpoint at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield Endpoint("127.0.0.1", unused.getsockname()[1])


@pytest.fixture
def alive():
    """Return an endpoint that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Endpoint("127.0.0.1", listening.getsockname()[1])


def test_proxies_that_do_not_answer_are_named_and_nothing_fails(dead, caplog):
    target.check_connection([dead], 60.0, must=False)
    assert f"1 of 1 proxies cannot be reached from the driver: {dead}: Connection refused" in caplog.text


def test_one_proxy_that_answers_will_do(dead, alive, caplog):
    target.check_connection([dead, alive], 60.0, must=True)
    assert f"1 of 2 proxies cannot be reached from the driver: {dead}: Connection refused" in caplog.text
    assert str(alive) not in caplog.text


def test_where_all_answer_nothing_is_said(alive, caplog):
    target.check_connection([alive], 60.0, must=True)
    assert caplog.text == ""
