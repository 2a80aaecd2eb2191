"""The table of metrics, from which the Prometheus collector and the OpenTelemetry meters are made.

Names and attributes follow the OpenTelemetry conventions for messaging clients where these have a name
(https://opentelemetry.io/docs/specs/semconv/messaging/messaging-metrics/); the others begin with
``dataproxy.producer.``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from dataproxy.producer.stats import ProducerStats

__all__ = ["DURATION", "METRICS", "Metric", "Point", "common_attributes"]

_OWN: Final = "dataproxy.producer."
_DROPPED: Final = "DROPPED"


class Point(NamedTuple):
    """Hold one value of a metric with its attributes."""

    value: float
    attributes: Mapping[str, str]


class Metric(NamedTuple):
    """Describe a metric; ``points`` returns its values from a snapshot.

    ``counter`` tells whether it only grows; ``unit`` is in UCUM.
    """

    name: str
    unit: str
    help: str
    counter: bool
    points: Callable[[ProducerStats], Iterator[Point]]


def common_attributes(group_id: str, name: str) -> dict[str, str]:
    """Return the attributes that every point of a producer has; ``name`` tells producers of a process apart."""
    attributes = {"messaging.system": "inlong", "messaging.operation.name": "send"}
    if group_id:
        attributes["messaging.destination.name"] = group_id
    if name:
        attributes["messaging.client.id"] = name
    return attributes


def _one(field: str) -> Callable[[ProducerStats], Iterator[Point]]:
    def points(stats: ProducerStats) -> Iterator[Point]:
        yield Point(getattr(stats, field), {})

    return points


def _sent(stats: ProducerStats) -> Iterator[Point]:
    yield Point(stats.delivered + stats.sent, {})
    for code, count in sorted(stats.errors.items(), key=lambda item: str(item[0])):
        if code == _DROPPED:
            continue  # never sent; counted by another metric
        yield Point(count, {"error.type": str(code)})


def _of_connections(*fields: str) -> Callable[[ProducerStats], Iterator[Point]]:
    """Return a function that sums some fields over the connections to each proxy."""

    def points(stats: ProducerStats) -> Iterator[Point]:
        sums: dict[tuple[str, str], int] = {}
        for connection in stats.connections:
            server = _server(connection.address)
            sums[server] = sums.get(server, 0) + sum(getattr(connection, field) for field in fields)
        for server, value in sums.items():
            yield Point(value, _named(server))

    return points


def _connections(stats: ProducerStats) -> Iterator[Point]:
    counts: dict[tuple[tuple[str, str], str], int] = {}
    for connection in stats.connections:
        key = (_server(connection.address), connection.state)
        counts[key] = counts.get(key, 0) + 1
    for (server, state), count in counts.items():
        yield Point(count, {**_named(server), "state": state})


def _load(stats: ProducerStats) -> Iterator[Point]:
    known: dict[tuple[str, str], list[int]] = {}
    for connection in stats.connections:
        if isinstance(connection.load, int):
            known.setdefault(_server(connection.address), []).append(connection.load)
    for server, loads in known.items():
        yield Point(sum(loads) / len(loads), _named(server))


def _server(address: str) -> tuple[str, str]:
    """Return host and port of a connection's address; if the host is a name, the address also has the numeric one.

    Connections to several addresses of one name count as connections to one server.
    """
    host, _, port = address.partition(" (")[0].rpartition(":")
    return host.strip("[]"), port


def _named(server: tuple[str, str]) -> dict[str, str]:
    return {"server.address": server[0], "server.port": server[1]}


def _quantiles(stats: ProducerStats) -> Iterator[Point]:
    latency = stats.latency
    for quantile, value in (("0.5", latency.p50), ("0.9", latency.p90), ("0.99", latency.p99), ("0.999", latency.p999)):
        if value is not None:
            yield Point(value, {"quantile": quantile})


#: The duration histogram of the conventions, from a pack's first message to its ack; its values are ``stats.latency``.
DURATION: Final = Metric(
    "messaging.client.operation.duration", "s", "Time from send to acknowledgement.", False, _quantiles
)

METRICS: Final = (
    Metric(
        "messaging.client.sent.messages",
        "{message}",
        "Messages with a final result; error.type is set for those that were neither delivered nor sent.",
        True,
        _sent,
    ),
    Metric(_OWN + "accepted.messages", "{message}", "Messages taken by sending calls.", True, _one("accepted")),
    Metric(_OWN + "unanswered.messages", "{message}", "Messages sent without asking for an ack.", True, _one("sent")),
    Metric(_OWN + "dropped.messages", "{message}", "Messages given up on overflow.", True, _one("dropped")),
    Metric(_OWN + "pending.messages", "{message}", "Messages without a final result.", False, _one("pending")),
    Metric(_OWN + "accepted.size", "By", "Bytes of bodies taken.", True, _one("accepted_bytes")),
    Metric(_OWN + "delivered.size", "By", "Bytes of bodies and framing delivered.", True, _one("delivered_bytes")),
    Metric(_OWN + "buffered.size", "By", "Bytes counted against the buffer limit.", False, _one("buffered_bytes")),
    Metric(_OWN + "in_flight.frames", "{frame}", "Frames without a final result.", False, _one("in_flight_frames")),
    Metric(_OWN + "retries", "{frame}", "Frames written again.", True, _one("retries")),
    Metric(
        _OWN + "duplicates_possible",
        "{frame}",
        "Attempts of delivered frames that were never answered.",
        True,
        _one("duplicates_possible"),
    ),
    Metric(
        _OWN + "duplicates_filtered",
        "{message}",
        "Messages that a server had stored before and did not store again.",
        True,
        _one("duplicates_filtered"),
    ),
    Metric(
        _OWN + "conflicts", "{message}", "Messages whose id a server knew with another body.", True, _one("conflicts")
    ),
    Metric(_OWN + "unmatched_replies", "{frame}", "Replies that counted for nothing.", True, _one("unmatched_replies")),
    Metric(_OWN + "connections", "{connection}", "Connections by address and state.", False, _connections),
    Metric(_OWN + "connection.sent", "By", "Bytes written to sockets.", True, _of_connections("sent_bytes")),
    Metric(_OWN + "connection.read", "By", "Bytes read from sockets.", True, _of_connections("read_bytes")),
    Metric(
        _OWN + "connection.losses",
        "{connection}",
        "Connects failed and connections lost.",
        True,
        _of_connections("losses"),
    ),
    Metric(
        _OWN + "connection.queued",
        "{frame}",
        "Frames waiting or unanswered at an address.",
        False,
        _of_connections("waiting_frames", "in_flight_frames"),
    ),
    Metric(_OWN + "proxy.load", "1", "Average load that a proxy reports.", False, _load),
    Metric(_OWN + "duration.quantile", "s", "Quantiles of the time from send to acknowledgement.", False, _quantiles),
)
