"""A ``timedelta`` is a timeout for every call of a producer and of a hub that waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

import dataproxy
from dataproxy.errors import ConfigError
from dataproxy.hub import Hub


def test_a_timedelta_is_a_timeout() -> None:
    producer = dataproxy.Producer("tcp://127.0.0.1:9", group_id="g", delivery_timeout=timedelta(minutes=1))
    try:
        assert producer.config.delivery_timeout == 60.0
        assert producer.flush(timedelta(seconds=5)).accepted == 0
        delivery = producer.send("s", b"x")
        batch = producer.send_batch("s", [b"x"])
        for call in (delivery.result, delivery.exception, batch.result):
            with pytest.raises(dataproxy.DeliveryPending):
                call(timedelta(0))
        for wait in (producer.flush, producer.close, delivery.result, delivery.exception, batch.result):
            with pytest.raises(ConfigError, match="a timeout is a number of seconds from 0 on, or a timedelta"):
                wait(timedelta(seconds=-1))
    finally:
        assert producer.close(timedelta(0)).failed == 2


def test_a_hub_takes_a_timedelta_and_refuses_what_is_no_timeout_before_anything_ends() -> None:
    with Hub() as hub:
        with pytest.raises(ConfigError, match="a timeout is"):
            hub.close("soon")  # type: ignore[arg-type]
        fault = hub.faults.add("drop_reply", nth=5)
        with pytest.raises(TimeoutError):
            fault.wait(timeout=timedelta(0))
        with dataproxy.Producer(hub.target, group_id="g") as producer:
            producer.send("s", b"x")
        hub.close(timedelta(seconds=5))
