"""The producer through every fault: one final result for each message, in time, and what is delivered is stored."""

import time
from collections import Counter

import pytest

import dataproxy
from dataproxy.testing import FaultProxy, Hub

MESSAGES = 150
#: What the machine may add to a result's time before a test fails: the promise itself is 0.25 s.
PROMISE = 0.25
MACHINE = 3.0
FAST = {
    "linger": 0.001,
    "batch_messages": 5,
    "ack_timeout": 0.3,
    "connect_timeout": 1.0,
    "retry_backoff": 0.002,
    "retry_backoff_max": 0.05,
    "retry_budget": 100_000,
    "reconnect_backoff": 0.002,
    "reconnect_backoff_max": 0.05,
    "heartbeat_interval": 0.05,
}

# Faults that leave a way: everything is delivered.
HEALING = [
    ("refuse", {"code": 114, "every": 3}),
    ("refuse", {"code": 119, "message": "the broker said no", "share": 0.3, "seed": 5}),
    ("stopped", {"listener": 0, "first": 5}),
    ("drained", {"listener": 0}),
    ("not_ready", {"listener": 1, "first": 3}),
    ("queue_full", {"first": 20}),
    ("disk_full", {"every": 3}),
    ("store_error", {"first": 10}),
    ("drop_reply", {"every": 5}),
    ("drop_reply", {"on": "heartbeat"}),
    ("delay", {"seconds": 0.05, "every": 2}),
    ("delay", {"seconds": 0.5, "every": 6}),
    ("duplicate", {}),
    ("duplicate", {"copies": 5, "every": 3}),
    ("foreign_id", {"every": 5}),
    ("reverse", {"batch": 2, "first": 10}),
    ("slice", {}),
    ("slice", {"on": "heartbeat"}),
    ("garbage", {"every": 6}),
    ("garbage", {"data": b"\0\0\0\0", "every": 6}),
    ("corrupt", {"at": 0, "mask": 0x80, "every": 6}),
    ("corrupt", {"at": 4, "mask": 0x04, "every": 6}),
    ("corrupt", {"at": 8, "mask": 0x01, "every": 6}),
    ("corrupt", {"at": -1, "every": 6}),
    ("close", {"every": 7}),
    ("close", {"stage": "after_store", "every": 7}),
    ("close", {"stage": "after_reply", "every": 7}),
    ("close", {"on": "connect", "first": 4}),
    ("close", {"on": "bytes", "at_byte": 700, "times": 5}),
    ("close", {"on": "heartbeat", "every": 3}),
    ("reset", {"every": 7}),
    ("reset", {"stage": "after_store", "share": 0.2, "seed": 9}),
    ("reset", {"on": "connect", "first": 4}),
    ("reset", {"on": "bytes", "at_byte": 333, "times": 5}),
    ("freeze", {"nth": 4}),
    ("freeze", {"side": "read", "listener": 0, "nth": 2}),
    ("freeze", {"side": "write", "listener": 0}),
    ("freeze", {"on": "connect", "nth": 1}),
    ("freeze", {"on": "bytes", "at_byte": 500, "listener": 2}),
    ("slow", {"bytes_per_second": 20_000}),
    ("load", {"load": 65534, "listener": 0}),
    ("refuse_connections", {"listener": 0}),
    ("kill", {"listener": 1}),
]  # fmt: skip
# Faults that leave none: (kind, options, outcome, code in the report, may a copy be stored).
HOPELESS = [
    ("refuse", {"code": 110}, "failed", 110, False),
    ("refuse", {"code": 114}, "expired", 114, False),
    ("stopped", {}, "expired", 2, False),
    ("drop_reply", {}, "expired", "EXPIRED", True),
    ("foreign_id", {}, "expired", "EXPIRED", True),
    ("close", {}, "expired", "EXPIRED", True),
    ("reset", {"stage": "after_store"}, "expired", "EXPIRED", True),
    ("freeze", {}, "expired", "EXPIRED", True),
    ("freeze", {"on": "connect"}, "expired", "EXPIRED", True),
    ("corrupt", {"at": -1}, "expired", "EXPIRED", True),
    ("kill", {}, "expired", "EXPIRED", False),
]


def name_of(value: object) -> str | None:
    """Return the name of a case's part."""
    if isinstance(value, dict):
        return ",".join(f"{k}={v!r}" for k, v in value.items()) or "always"
    return str(value)


def code_of(error: dataproxy.DeliveryError) -> object:
    """Return what a report counts an error under: the last answer of a proxy, if there was one."""
    return error.details["cause"] if isinstance(error.details["cause"], int) else error.code


class Run:
    """Send messages and hold what the producer said of each."""

    def __init__(self, target: str, timeout: float, *, connections: int = 0, **options: object) -> None:
        self.timeout = timeout
        self.told: list[dataproxy.DeliveryResult] = []
        self.bodies = [b"message %d" % i for i in range(MESSAGES)]
        settings = {**FAST, "delivery_timeout": timeout, "group_id": "g", "on_delivery": self.told.append, **options}
        producer = dataproxy.Producer(target, **settings)
        try:
            while sum(one.state == "active" for one in producer.stats().connections) < connections:
                time.sleep(0.001)
            self.sent = [producer.send("s", body) for body in self.bodies]
            for delivery in self.sent:
                delivery.exception(timeout + MACHINE)
        finally:
            self.report = producer.close(MACHINE)

    def judge(self, hub: Hub) -> None:
        """Check the accounting, the count and time of results, and the store against them."""
        report = self.report
        assert report.balanced
        assert (report.accepted, report.pending) == (MESSAGES, 0)
        assert len(self.told) == MESSAGES, "on_delivery is called once for each message"
        errors = [delivery.exception(0) for delivery in self.sent]
        assert report.delivered == errors.count(None)
        assert Counter(code_of(error) for error in errors if error is not None) == report.errors
        for delivery, error in zip(self.sent, errors, strict=True):
            latency = delivery.result(0).latency if error is None else error.details["latency"]
            assert latency <= self.timeout + PROMISE + MACHINE
        stored = [(record.body, record.message_id) for record in hub.records("g")]
        ids = dict(stored)
        for body, delivery, error in zip(self.bodies, self.sent, errors, strict=True):
            if error is None:
                assert ids.get(body) == delivery.id, "called delivered and not stored"
            elif not error.details["maybe_delivered"]:
                assert body not in ids, "stored, and said to be impossible"
        assert set(ids) <= set(self.bodies)
        assert len(set(stored)) == len(ids), "copies have the same id"


@pytest.mark.parametrize(("kind", "options"), HEALING, ids=name_of)
def test_everything_is_delivered_through(hub, kind, options):
    with hub.faults.add(kind, **options) as fault:
        run = Run(hub.target, 60.0)
        assert run.report.ok, run.report
        if fault.fault.event in ("data", "connect") and fault.fault.listener is None:
            assert fault.fired > 0
    run.judge(hub)


@pytest.mark.parametrize(("kind", "options", "outcome", "code", "maybe"), HOPELESS, ids=name_of)
def test_nothing_gets_through(hub, kind, options, outcome, code, maybe):
    with hub.faults.add(kind, **options):
        run = Run(hub.target, 1.5)
        assert getattr(run.report, outcome) == MESSAGES
        assert run.report.errors == {code: MESSAGES}
        run.judge(hub)
        if not maybe:
            assert not hub.counts()


def test_a_frozen_proxy_stores_late_and_under_the_same_ids(hub):
    with hub.faults.add("freeze", listener=0) as fault:
        run = Run(hub.target, 60.0, connections=3)
        assert run.report.ok
        run.judge(hub)
        assert fault.fired > 0
    run.judge(hub)


def test_listeners_die_and_come_back_while_messages_flow(hub):
    with dataproxy.Producer(hub.target, group_id="g", **FAST) as producer:
        sent = []
        for i in range(6):
            victim = hub.listeners[i % 3]
            victim.kill()
            sent += [producer.send("s", b"%d" % (100 * i + k)) for k in range(100)]
            victim.restart()
        assert all(delivery.result(60) for delivery in sent)
    assert {record.body for record in hub.records("g")} == {b"%d" % i for i in range(600)}
    assert producer.report().ok


def test_discovery_survives_a_manager_in_trouble(hub):
    for kind, options in (("manager_down", {}), ("manager_answer", {}), ("manager_answer", {"status": 503})):
        with hub.faults.add(kind, **options), pytest.raises(dataproxy.DiscoveryError):
            dataproxy.Producer(hub.manager_url, group_id="g", manager_timeout=2.0)
    with hub.faults.add("manager_slow") as fault, pytest.raises(dataproxy.DiscoveryError):
        dataproxy.Producer(hub.manager_url, group_id="g", manager_timeout=0.1)
    assert fault.fired > 0
    with hub.faults.add("drained", listener=0):
        run = Run(hub.manager_url, 60.0)
    assert run.report.ok
    run.judge(hub)


# What a proxy between client and hub can do: every connection suffers once, the next one is spared.
TCP = [
    ("reset", {"at_byte": 500, "times": 4}),
    ("reset", {"side": "to_client", "at_byte": 100, "times": 3}),
    ("close", {"at_byte": 300, "times": 4}),
    ("half_close", {"side": "to_client", "at_byte": 50, "times": 2}),
    ("half_close", {"side": "to_server", "at_byte": 400, "times": 2}),
    ("freeze", {"at_byte": 200, "connection": 1}),
    ("freeze", {"side": "to_client", "at_byte": 10, "connection": 1}),
    ("freeze", {"side": "to_server", "connection": 1}),
    ("corrupt", {"side": "to_client", "at_byte": 1, "mask": 0x40, "times": 3}),
    ("corrupt", {"side": "to_client", "at_byte": 9, "times": 3}),
    ("corrupt", {"side": "to_server", "at_byte": 1, "mask": 0x40, "times": 3}),
    ("delay", {"seconds": 0.02}),
    ("slice", {}),
    ("slice", {"size": 7, "side": "to_client"}),
    ("bandwidth", {"bytes_per_second": 100_000}),
]


@pytest.mark.parametrize(("kind", "options"), TCP, ids=name_of)
def test_everything_is_delivered_through_a_bad_network(hub, kind, options):
    with FaultProxy(hub.listeners[0].target) as proxy:
        fault = proxy.add(kind, **options)
        run = Run(proxy.target, 60.0, connections=1)
        assert run.report.ok, run.report
        assert fault.fired > 0
    run.judge(hub)
