"""Hooks of servers and signals that close producers, called as servers call them; tests/services runs the servers."""

import os
import signal

import pytest

import dataproxy
from dataproxy.hub import Hub
from dataproxy.integrations import gunicorn
from dataproxy.producer import endsignals


def waiting(hub, **options):
    """Return a producer that has accepted a message and not sent it."""
    producer = dataproxy.Producer(hub.target, group_id="g", linger="50s", delivery_timeout="200s", **options)
    producer.send_nowait("s", b"x")
    return producer


@pytest.mark.parametrize("hook", [lambda: gunicorn.worker_exit(None, None), lambda: gunicorn.worker_abort(None)])
def test_the_end_of_a_worker_delivers_what_it_has_accepted(hook):
    with Hub() as hub:
        producer = waiting(hub)
        hook()
        assert producer.closed
        assert [record.body for record in hub.records("g", "s")] == [b"x"]


def test_a_signal_closes_first_and_then_calls_what_was_installed(monkeypatch):
    heard = []
    usual = signal.signal(signal.SIGHUP, lambda number, _frame: heard.append((number, producer.closed)))
    monkeypatch.setattr(endsignals, "_before", {})
    try:
        with Hub() as hub:
            producer = waiting(hub, close_on=("SIGHUP",))
            other = waiting(hub)
            os.kill(os.getpid(), signal.SIGHUP)
            assert heard == [(signal.SIGHUP, True)]
            assert [record.body for record in hub.records("g", "s")] == [b"x"]
            assert not other.closed, "it did not ask for it"
            other.close()
    finally:
        signal.signal(signal.SIGHUP, usual)
