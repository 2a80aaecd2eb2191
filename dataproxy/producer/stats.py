"""Snapshots of a producer as typed values; every field is explained in docs/statistics.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dataproxy.lasterror import LastError, last_error
from dataproxy.logs import lost_records
from dataproxy.outcomes import Report, code_key

__all__ = ["ConnectionStats", "Latency", "ProducerStats", "make_report", "make_stats", "shared_counts"]

#: Counters of the core that `shared_counts` hands on as they are.
_ALIKE: Final = (
    "accepted",
    "delivered",
    "sent",
    "failed",
    "expired",
    "dropped",
    "delivered_bytes",
    "retries",
    "duplicates_filtered",
    "conflicts",
)


@dataclass(frozen=True, slots=True)
class ConnectionStats:
    """Describe one connection: bytes and frames since the producer was opened.

    ``state`` is idle, connecting, active, backoff or closed.  ``role``: an "active" connection takes frames, a
    "standby" is only kept ready.  ``out`` says why its proxy takes no frames for a while, None while it does: failures,
    refusals, slow, silent.  ``load`` is the weighted average of what the proxy reported, None while unknown, "stopped"
    while the connection is down.  ``answer_time`` is the median of the newest answers in seconds, None while there are
    too few.
    """

    executor: int
    address: str
    state: str
    role: str
    out: str | None
    sent_bytes: int
    read_bytes: int
    sent_frames: int
    acked_frames: int
    waiting_frames: int
    in_flight_frames: int
    unanswered_heartbeats: int
    load: int | str | None
    answer_time: float | None
    connects: int
    losses: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Hold percentiles in seconds, from a pack's first message to its ack, weighted by messages; None without any.

    With ``ack="none"`` the time ends when the kernel has taken the pack's last byte.

    ``sum`` adds up the latencies of all messages; ``buckets`` are pairs (upper bound in seconds, messages at or
    below it), to within 3.2 %.
    """

    count: int
    sum: float
    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None
    max: float | None
    buckets: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class ProducerStats:
    """Hold one consistent snapshot of a producer.

    Exactly ``accepted == delivered + sent + failed + expired + dropped + pending`` and
    ``pending == open + in_flight``.
    """

    accepted: int
    delivered: int
    sent: int
    failed: int
    expired: int
    dropped: int
    pending: int
    open: int
    in_flight: int
    accepted_bytes: int
    delivered_bytes: int
    buffered_bytes: int
    memory_bytes: int
    results_bytes: int
    in_flight_frames: int
    settled_frames: int
    retries: int
    duplicates_possible: int
    duplicates_filtered: int
    conflicts: int
    unmatched_replies: int
    retries_held_back: int
    balance: Mapping[str, int]
    undelivered_bytes: int
    not_kept: int
    untold: Mapping[str, int]
    callback_errors: int
    log_errors: int
    errors: Mapping[int | str, int]
    latency: Latency
    connections: tuple[ConnectionStats, ...]
    seconds: float
    last_error: LastError | None

    @property
    def balanced(self) -> bool:
        """Tell whether the counts balance; if not, that is a defect of this library."""
        known = self.delivered + self.sent + self.failed + self.expired + self.dropped
        return self.accepted == known + self.open + self.in_flight


def _errors_by_code(codes: Mapping[int, int]) -> dict[int | str, int]:
    """Return the number of messages by code; several local codes may share one word."""
    out: dict[int | str, int] = {}
    for code, count in codes.items():
        key = code_key(code)
        out[key] = out.get(key, 0) + count
    return out


def shared_counts(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a Report, the statistics and the accounting of a Spark task have alike."""
    return {
        **{name: counts[name] for name in _ALIKE},
        "pending": counts["open"] + counts["in_flight"],
        "errors": _errors_by_code(counts["codes"]),
    }


def make_report(counts: Mapping[str, Any], seconds: float) -> Report:
    """Return the report for the core's counters."""
    return Report(
        **shared_counts(counts),
        accepted_bytes=counts["accepted_bytes"],
        duplicates_possible=counts["duplicates_possible"],
        seconds=seconds,
        not_kept=counts["not_kept"],
        maybe_delivered=counts["maybe_delivered"],
        last_error=last_error(counts["trouble"]),
    )


def make_stats(
    counts: Mapping[str, Any], connections: list[dict[str, Any]], seconds: float, callback_errors: int
) -> ProducerStats:
    """Return the statistics for the core's counters and connections."""
    return ProducerStats(
        **shared_counts(counts),
        open=counts["open"],
        in_flight=counts["in_flight"],
        accepted_bytes=counts["accepted_bytes"],
        buffered_bytes=counts["buffered_bytes"],
        memory_bytes=counts["memory_bytes"],
        results_bytes=counts["results_bytes"],
        in_flight_frames=counts["in_flight_frames"],
        settled_frames=counts["settled_frames"],
        duplicates_possible=counts["duplicates_possible"],
        unmatched_replies=counts["unmatched"],
        retries_held_back=counts["held_back"],
        balance=counts["balance"],
        undelivered_bytes=counts["undelivered_bytes"],
        not_kept=counts["not_kept"],
        untold=counts["untold"],
        callback_errors=callback_errors,
        log_errors=lost_records(),
        latency=Latency(**counts["latency"]),
        connections=tuple(ConnectionStats(**connection) for connection in connections),
        seconds=seconds,
        last_error=last_error(counts["trouble"]),
    )
