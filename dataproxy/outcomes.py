"""Results as values: what a delivery ends in, and the reports of a producer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dataproxy.codes import describe
from dataproxy.errors import DeliveryError, DeliveryExpired, DeliveryFailed

__all__ = [
    "BatchDelivered",
    "Delivered",
    "DeliveryResult",
    "Facts",
    "Failure",
    "Report",
    "code_key",
    "delivered",
    "delivery_error",
    "message_id",
]

# Outcomes and local codes as the core numbers them (base/pack.pxd, io/link.pxd).
_DELIVERED, _FAILED, _EXPIRED = 1, 2, 3
_LOCAL = {
    -1: ("EXPIRED", "no success within delivery_timeout"),
    -2: ("EXPIRED", "no answer within ack_timeout"),
    -3: ("EXPIRED", "the connection was lost"),
    -4: ("CLOSED", "the producer was closed before the message had a result"),
    -5: ("ENCODE", "the frame could not be built within max_frame_bytes"),
    -6: ("NO_MEMORY", "there was no memory for the frame"),
}

#: (outcome, code, text, attempts, maybe_delivered, node, latency in s, sequence number, pack id)
Facts = tuple[int, int, str, int, bool, str, float, int, str]


class Delivered(NamedTuple):
    """Say where and how a message was delivered.

    ``latency`` is in seconds from the pack's first message to its ack; ``sequence`` is the pack's number on
    the wire and ``position`` the message's place in it.  ``id`` is the message's own and what a consumer finds.
    """

    node: str
    attempts: int
    latency: float
    sequence: int
    position: int
    id: str


class Failure(NamedTuple):
    """Name ``messages`` of a batch, from number ``first`` of the accepted ones on, that share one error."""

    first: int
    messages: int
    error: DeliveryError


class BatchDelivered(NamedTuple):
    """Count the results of a batch: messages ``accepted``, of these ``delivered``; rows ``skipped`` by policy."""

    accepted: int
    delivered: int
    skipped: int
    failures: tuple[Failure, ...]

    @property
    def ok(self) -> bool:
        """Tell whether every accepted message was delivered."""
        return self.accepted == self.delivered


class DeliveryResult(NamedTuple):
    """Hand one message's final result to ``on_delivery``; exactly one of ``delivered`` and ``error`` is set."""

    group_id: str
    stream_id: str
    delivered: Delivered | None
    error: DeliveryError | None


@dataclass(frozen=True, slots=True)
class Report:
    """Count messages by outcome since the producer was opened.

    At any moment exactly ``accepted == delivered + failed + expired + dropped + pending``.
    ``duplicates_possible`` counts frames that were sent again although an earlier attempt may have been stored.
    ``seconds`` is the producer's age.
    """

    accepted: int
    delivered: int
    failed: int
    expired: int
    dropped: int
    pending: int
    accepted_bytes: int
    delivered_bytes: int
    retries: int
    duplicates_possible: int
    seconds: float
    errors: Mapping[int | str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Tell whether everything accepted was delivered."""
        return self.accepted == self.delivered

    @property
    def balanced(self) -> bool:
        """Tell whether the books balance; anything else is a defect of this library."""
        return self.accepted == self.delivered + self.failed + self.expired + self.dropped + self.pending


def message_id(pack_id: str, position: int) -> str:
    """Return the id of a message that was given none: its pack's, a dot, and its place in the pack."""
    return f"{pack_id}.{position}"


def delivery_error(facts: Facts, position: int, own_id: str | None = None) -> DeliveryError:
    """Return the error for a message that failed or expired; ``own_id`` is the caller's ``message_id``."""
    outcome, code, text, attempts, maybe, node, latency, sequence, pack_id = facts
    details = {
        "attempts": attempts,
        "maybe_delivered": maybe,
        "node": node,
        "latency": latency,
        "sequence": sequence,
        "position": position,
        "id": message_id(pack_id, position) if own_id is None else own_id,
    }
    if outcome == _FAILED and code > 0:
        return DeliveryFailed.from_code(code, text, details)
    if code > 0:
        meaning, hint = describe(code)
        return DeliveryExpired(
            f"not delivered within delivery_timeout after {attempts} attempts; "
            f"the last answer was code {code} ({meaning})",
            hint=hint,
            details=details,
        )
    name, meaning = _LOCAL.get(code, ("DELIVERY", f"unknown local code {code}"))
    also = ", and it may have arrived" if maybe else ""
    if outcome == _EXPIRED:
        hint = "see that the proxies are reachable, or raise delivery_timeout"
        return DeliveryExpired(f"{meaning} ({attempts} attempts){also}", hint=hint, details=details)
    return DeliveryFailed(f"{meaning}{also}", code=name, retriable=code == -4, details=details)


def delivered(facts: Facts, position: int, own_id: str | None = None) -> Delivered:
    """Return the Delivered of a message, or raise its DeliveryError."""
    if facts[0] != _DELIVERED:
        raise delivery_error(facts, position, own_id)
    name = message_id(facts[8], position) if own_id is None else own_id
    return Delivered(facts[5], facts[3], facts[6], facts[7], position, name)


def code_key(code: int) -> int | str:
    """Return how a code of the core appears in ``Report.errors``: a server's number or a local word."""
    if code > 0:
        return code
    return _LOCAL.get(code, (str(code), ""))[0]
