"""Producers as Prometheus families and OpenTelemetry metrics: the numbers are those of the accounting."""

import asyncio
import gc
import re
import socket
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from dataproxy import AsyncProducer, ForkedError, Producer
from dataproxy.hub import Hub
from dataproxy.observe import opentelemetry, prometheus
from dataproxy.observe.metrics import METRICS

LABELS = {"messaging_system": "inlong", "messaging_operation_name": "send", "messaging_destination_name": "g"}


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


def labels(**more):
    return {**LABELS, "messaging_client_id": "", **more}


def test_prometheus_shows_the_accounting(hub):
    registry = CollectorRegistry()
    with Producer(hub.target, group_id="g") as producer:
        prometheus.watch(producer, "p1", registry=registry)
        for _ in range(10):
            producer.send_nowait("s", b"body")
        producer.flush()
        stats = producer.stats()
        own = {**LABELS, "messaging_client_id": "p1"}
        value = registry.get_sample_value
        assert value("messaging_client_sent_messages_total", own) == 10
        assert value("dataproxy_producer_accepted_messages_total", own) == 10
        assert value("dataproxy_producer_accepted_size_bytes_total", own) == 40
        assert value("dataproxy_producer_pending_messages", own) == 0
        assert value("messaging_client_operation_duration_seconds_count", own) == 10
        assert value("messaging_client_operation_duration_seconds_bucket", {**own, "le": "+Inf"}) == 10
        assert value("messaging_client_operation_duration_seconds_sum", own) == stats.latency.sum
        host, port = hub.target.removeprefix("tcp://").split(":")
        place = {"server_address": host, "server_port": port}
        assert value("dataproxy_producer_connections", {**own, **place, "state": "active"}) == 1
        assert b"# TYPE dataproxy_producer_retries_total counter" in generate_latest(registry)


def test_refused_messages_carry_their_code(hub):
    hub.set_service("not_ready")
    registry = CollectorRegistry()
    producer = Producer(hub.target, group_id="g", delivery_timeout=0.2)
    prometheus.watch(producer, registry=registry)
    producer.send_nowait("s", b"body")
    report = producer.close()
    (code,) = report.errors
    own = {**LABELS, "error_type": str(code)}
    assert registry.get_sample_value("messaging_client_sent_messages_total", own) == 1
    assert registry.get_sample_value("messaging_client_sent_messages_total", {**LABELS, "error_type": ""}) == 0


def test_several_producers_of_one_collector_and_one_that_is_gone(hub):
    registry = CollectorRegistry()
    with Producer(hub.target, group_id="g") as first:
        collector = prometheus.watch(first, "a", registry=registry)
        second = Producer(hub.target, group_id="g")
        collector.add(second, "b")
        name = "dataproxy_producer_accepted_messages_total"
        for client in ("a", "b"):
            assert registry.get_sample_value(name, {**LABELS, "messaging_client_id": client}) == 0
        second.close()
        del second
        gc.collect()
        assert registry.get_sample_value(name, {**LABELS, "messaging_client_id": "b"}) is None
        assert registry.get_sample_value(name, {**LABELS, "messaging_client_id": "a"}) == 0


def test_opentelemetry_shows_the_accounting(hub):
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    with Producer(hub.target, group_id="g") as producer:
        opentelemetry.watch(producer, "p1", meter_provider=provider)
        for _ in range(10):
            producer.send_nowait("s", b"body")
        producer.flush()
        data = reader.get_metrics_data()
    (scope,) = data.resource_metrics[0].scope_metrics
    found = {metric.name: metric for metric in scope.metrics}
    assert set(found) <= {metric.name for metric in METRICS}
    assert {m.name for m in METRICS} - set(found) <= {"dataproxy.producer.proxy.load"}
    (sent,) = found["messaging.client.sent.messages"].data.data_points
    assert sent.value == 10
    assert sent.attributes == {
        "messaging.system": "inlong",
        "messaging.operation.name": "send",
        "messaging.destination.name": "g",
        "messaging.client.id": "p1",
    }
    assert found["messaging.client.sent.messages"].data.is_monotonic
    assert not found["dataproxy.producer.pending.messages"].data.is_monotonic
    provider.shutdown()


def test_names_are_unique_and_explained():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(metric.help.endswith(".") for metric in METRICS)


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("10.0.0.1:46801", ("10.0.0.1", "46801")),
        ("proxy.test:46801 (10.0.0.1)", ("proxy.test", "46801")),
        ("proxy.test:46801 (2001:db8::1)", ("proxy.test", "46801")),
        ("[2001:db8::1]:46801", ("2001:db8::1", "46801")),
        ("", ("", "")),
    ],
)
def test_ports_are_numbers_and_hosts_are_names(address, server):
    connections = [SimpleNamespace(address=address, state="active", load=10, sent_bytes=1)] * 2
    stats = SimpleNamespace(connections=connections)
    found = {"server.address": server[0], "server.port": server[1]}
    for metric, expected in (("connection.sent", 2), ("connections", 2), ("proxy.load", 10)):
        (points,) = [one.points for one in METRICS if one.name == f"dataproxy.producer.{metric}"]
        (point,) = points(stats)
        assert (point.value, {**point.attributes, "state": ""}) == (expected, {**found, "state": ""})


def test_addresses_of_one_name_are_one_server(hub, monkeypatch):
    """A collector refuses two values with the same labels."""
    usual = socket.getaddrinfo

    def getaddrinfo(host, port, *rest, **options):
        if host != "proxies.test":
            return usual(host, port, *rest, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{i}", port)) for i in (1, 2)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    registry = CollectorRegistry()
    with Producer(f"tcp://proxies.test:{hub.port}", group_id="g") as producer:
        prometheus.watch(producer, registry=registry)
        producer.send("s", b"x").result(30)
        assert len(producer.stats().connections) == 2
        samples = [s for f in registry.collect() for s in f.samples if s.name.endswith("connection_sent_bytes_total")]
        (sample,) = samples
        assert (sample.labels["server_address"], sample.labels["server_port"]) == ("proxies.test", str(hub.port))


ACCEPTED = "dataproxy_producer_accepted_messages_total"


def scraped(registry):
    """Return the values of ACCEPTED by client, as a reader of the strict format finds them."""
    text = generate_openmetrics(registry).decode()
    families = list(text_string_to_metric_families(text))
    types = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(types) == len(set(types)) == len(families)
    samples = [sample for family in families for sample in family.samples if sample.name == ACCEPTED]
    return {sample.labels.get("messaging_client_id", ""): sample.value for sample in samples}


def test_two_producers_that_are_watched_share_their_families(hub):
    registry = CollectorRegistry()
    with Producer(hub.target, group_id="g") as first, Producer(hub.target, group_id="g") as second:
        collector = prometheus.watch(first, "a", registry=registry)
        assert prometheus.watch(second, "b", registry=registry) is collector
        second.send("s", b"x").result(30)
        assert scraped(registry) == {"a": 0, "b": 1}
        registry.unregister(collector)
        assert scraped(registry) == {}
        prometheus.watch(first, "c", registry=registry)
        assert scraped(registry)["c"] == 0


def test_producers_without_a_name_are_numbered(hub):
    registry = CollectorRegistry()
    with Producer(hub.target, group_id="g") as first, Producer(hub.target, group_id="g") as second:
        for producer in (first, first, second):
            prometheus.watch(producer, registry=registry)
        second.send("s", b"x").result(30)
        assert scraped(registry) == {"": 0, "2": 1}


def test_an_async_producer_is_shown_from_its_opening_on(hub):
    registry = CollectorRegistry()

    async def run():
        late = AsyncProducer(hub.target, group_id="g")
        prometheus.watch(late, "late", registry=registry)
        assert scraped(registry) == {"early": 0}
        async with late:
            await late.send("s", b"x")
            assert scraped(registry) == {"early": 0, "late": 1}

    with Producer(hub.target, group_id="g") as early:
        prometheus.watch(early, "early", registry=registry)
        asyncio.run(run())


def test_in_a_forked_child_the_producers_of_its_parent_do_not_break_the_scrape(hub):
    class OfTheParent:
        config = SimpleNamespace(group_id="g")

        def stats(self):
            raise ForkedError("made before the fork")

    registry = CollectorRegistry()
    inherited = OfTheParent()
    prometheus.watch(inherited, "parent", registry=registry)
    with Producer(hub.target, group_id="g") as own:
        prometheus.watch(own, "child", registry=registry)
        assert scraped(registry) == {"child": 0}


def observed(reader, name="dataproxy.producer.accepted.messages"):
    """Return the values of one OpenTelemetry metric by client."""
    data = reader.get_metrics_data()
    scopes = data.resource_metrics[0].scope_metrics if data else []
    points = [p for scope in scopes for m in scope.metrics if m.name == name for p in m.data.data_points]
    return {point.attributes.get("messaging.client.id", ""): point.value for point in points}


def test_opentelemetry_shows_every_watched_producer(hub, caplog):
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])

    async def run():
        late = AsyncProducer(hub.target, group_id="g")
        opentelemetry.watch(late, "late", meter_provider=provider)
        assert observed(reader) == {"a": 0, "b": 1}
        async with late:
            assert observed(reader) == {"a": 0, "b": 1, "late": 0}

    with Producer(hub.target, group_id="g") as first, Producer(hub.target, group_id="g") as second:
        opentelemetry.watch(first, "a", meter_provider=provider)
        opentelemetry.watch(second, "b", meter_provider=provider)
        second.send("s", b"x").result(30)
        asyncio.run(run())
    provider.shutdown()
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]
