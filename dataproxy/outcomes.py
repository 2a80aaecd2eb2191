"""Results as values: outcomes of deliveries, and the reports of a producer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dataproxy.codes import describe
from dataproxy.errors import DeliveryDropped, DeliveryError, DeliveryExpired, DeliveryFailed, server_of
from dataproxy.escapes import unescape_attrs
from dataproxy.lasterror import LastError, cause_of, packed_error, tells_of_size
from dataproxy.numbers import (
    LC_ACK_TIMEOUT,
    LC_CLOSED,
    LC_CONNECTION_LOST,
    LC_DISPLACED,
    LC_DROPPED,
    LC_ENCODE,
    LC_NO_MEMORY,
    LC_NO_SINK_ACK,
    LC_TIMEOUT,
    OUT_DELIVERED,
    OUT_DROPPED,
    OUT_EXPIRED,
    OUT_FAILED,
    OUT_SENT,
)

__all__ = ["BatchDelivered", "Delivered", "DeliveryResult", "Failure", "Refusal", "Report", "Sent", "Undelivered"]

# By local code.
_LOCAL = {
    LC_TIMEOUT: ("EXPIRED", "not delivered within delivery_timeout"),
    LC_ACK_TIMEOUT: ("EXPIRED", "not delivered within delivery_timeout: no answer within ack_timeout"),
    LC_CONNECTION_LOST: ("EXPIRED", "not delivered within delivery_timeout: the connection was lost"),
    LC_CLOSED: ("CLOSED", "the producer was closed before the message had a result"),
    LC_ENCODE: ("ENCODE", "the frame could not be built within max_frame_bytes"),
    LC_NO_MEMORY: ("NO_MEMORY", "there was no memory for the frame"),
    LC_DROPPED: ("DROPPED", "dropped on arrival because the buffer was full"),
    LC_DISPLACED: ("DROPPED", "dropped before it was sent, to make room for newer messages"),
    LC_NO_SINK_ACK: (
        "NO_SINK_ACK",
        "not delivered within delivery_timeout: the frame was written, and no ack came from behind the message queue",
    ),
}

_LIMIT_HINT = (
    "set max_frame_bytes and batch_bytes below the proxies' max-msg-length (dataproxy doctor TARGET finds it), or raise"
    " that there"
)
_CAUSES = {
    LC_ACK_TIMEOUT: "ACK_TIMEOUT",
    LC_CONNECTION_LOST: "CONNECTION_LOST",
    LC_NO_SINK_ACK: "NO_SINK_ACK",
    LC_CLOSED: "CLOSED",
    LC_ENCODE: "ENCODE",
    LC_NO_MEMORY: "NO_MEMORY",
}

#: (outcome, code, text, attempts, maybe_delivered, node, latency in s, sequence number, pack id, last refusal's code);
#: ``text`` goes with the last refusal.
ResultFields = tuple[int, int, str, int, bool, str, float, int, str, int]


class Delivered(NamedTuple):
    """Say where and how a message was delivered.

    ``latency`` is in seconds from the pack's first message to its ack; ``sequence`` is the pack's number on
    the wire and ``position`` the message's place in it.  ``id`` is the message's id, as consumers see it.
    """

    node: str
    attempts: int
    latency: float
    sequence: int
    position: int
    id: str


class Sent(NamedTuple):
    """Say where and how a message was sent with ``ack="none"``: written whole to a socket, and never answered.

    Whether the proxy got it is not known.  The fields are those of Delivered; ``latency`` ends when the kernel had
    taken the last byte of the message's frame.
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


class Refusal(NamedTuple):
    """Name a row of a table that cannot be sent, and why; ``row`` counts from 0."""

    row: int
    code: str
    reason: str


class BatchDelivered(NamedTuple):
    """Count the results of a batch: messages ``accepted``, of these ``delivered``; rows ``skipped`` by policy.

    ``sent`` counts messages that were written with ``ack="none"``.

    ``refused`` counts the rows that ``send_rows`` left out by ``bad_records``, ``refusals`` names the first hundred.
    """

    accepted: int
    delivered: int
    skipped: int
    failures: tuple[Failure, ...]
    refused: int = 0
    refusals: tuple[Refusal, ...] = ()
    sent: int = 0

    @property
    def ok(self) -> bool:
        """Tell whether every accepted message was delivered, or sent where no answer was asked for."""
        return self.accepted == self.delivered + self.sent


class DeliveryResult(NamedTuple):
    """Hand one message's final result to ``on_delivery``; one of ``delivered``, ``error`` and ``sent`` is set."""

    group_id: str
    stream_id: str
    delivered: Delivered | None
    error: DeliveryError | None
    sent: Sent | None = None


class Undelivered(NamedTuple):
    """Hold one message that was accepted and not delivered, with everything needed to send it again.

    A ``key`` is not kept: to send again by key, put it into the body or ``attrs`` as well.
    ``attempts`` counts how often it was written; ``error`` says why it was not delivered, and
    ``error.details["maybe_delivered"]`` whether a copy may have arrived.  ``attrs`` are the message's attributes and
    those of its stream handle, ``dt_ms`` is its data time (to the second, unless it was given as exact).
    """

    group_id: str
    stream_id: str
    body: bytes
    id: str
    attempts: int
    error: DeliveryError
    attrs: Mapping[str, str]
    dt_ms: int


class Watch(NamedTuple):
    """Hold a callback until its pack has its result: for one Delivery, or for ``messages`` from ``first`` on."""

    function: Callable[[Any], object]
    delivery: Any
    group_id: str
    stream_id: str
    first: int
    messages: int
    own_ids: Sequence[str | None] | None


@dataclass(frozen=True, slots=True)
class Report:
    """Count messages by outcome since the producer was opened.

    At any moment exactly ``accepted == delivered + sent + failed + expired + dropped + pending``.
    ``sent`` counts messages that were written with ``ack="none"``, of which nobody knows whether they arrived.
    ``duplicates_possible`` counts frames that were sent again although an earlier attempt may have been stored.
    ``duplicates_filtered`` counts messages that a server had stored before and did not store again, ``conflicts`` those
    whose id it knew with another body: only hubs with the option ``dedupe`` report both.
    ``not_kept`` counts messages that were not delivered and that ``Producer.undelivered`` cannot return, because
    ``undelivered_bytes`` was used up.  ``maybe_delivered`` counts failed and expired messages that were written and
    not answered by every proxy that got them: they may be stored nevertheless.  ``seconds`` is the producer's age.
    ``last_error`` is the last failure of a connection, None without one.
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
    duplicates_filtered: int = 0
    conflicts: int = 0
    not_kept: int = 0
    maybe_delivered: int = 0
    last_error: LastError | None = None
    sent: int = 0

    @property
    def ok(self) -> bool:
        """Tell whether everything accepted was delivered, or sent where no answer was asked for."""
        return self.accepted == self.delivered + self.sent

    @property
    def balanced(self) -> bool:
        """Tell whether the counts balance; if not, that is a defect of this library."""
        known = self.delivered + self.sent + self.failed + self.expired + self.dropped
        return self.accepted == known + self.pending


def message_id(pack_id: str, position: int) -> str:
    """Return the id of a message without an id of the caller: the pack's id, a dot, and the place in the pack."""
    return f"{pack_id}.{position}"


def _said(text: str) -> str:
    return f": {text!r}" if text else ""


def delivery_error(fields: ResultFields, position: int, own_id: str | None = None) -> DeliveryError:
    """Return the error for a message that failed, expired or was dropped; ``own_id`` is the caller's ``message_id``."""
    outcome, code, text, attempts, maybe, node, latency, sequence, pack_id, refused = fields
    trouble = "" if code > 0 or refused else packed_error(text)
    cause = _CAUSES.get(code) or (cause_of(text) if trouble else "") or "EXPIRED"
    details = {
        "attempts": attempts,
        "cause": code if code > 0 else cause,
        "last_code": refused or None,
        "last_reason": trouble or text,
        "maybe_delivered": maybe,
        "node": node,
        "latency": latency,
        "sequence": sequence,
        "position": position,
        "id": message_id(pack_id, position) if own_id is None else own_id,
    }
    if outcome == OUT_FAILED and code > 0:
        return DeliveryFailed.from_code(code, text, details)
    if code > 0:
        meaning, hint = describe(code)
        return DeliveryExpired(
            f"not delivered within delivery_timeout after {attempts} attempts; "
            f"the last answer was code {code} ({meaning}){_said(text)}",
            hint=hint,
            details=details,
        )
    name, meaning = _LOCAL.get(code, ("DELIVERY", f"unknown local code {code}"))
    if outcome == OUT_DROPPED:
        return DeliveryDropped(meaning, hint=describe("DROPPED")[1], details=details)
    also = "; it may have arrived" if maybe else ""
    if refused:
        also += f"; the last refusal by a {server_of(refused)} was code {refused} ({describe(refused)[0]}){_said(text)}"
    if trouble:
        also += f"; the last error was {trouble}"
    if code == LC_NO_SINK_ACK:
        return DeliveryExpired(
            f"{meaning}; it was not sent again, and is probably stored{also}",
            code=name,
            retriable=False,
            hint=describe(name)[1],
            details=details,
        )
    if outcome == OUT_EXPIRED:
        hint = (
            "check that the servers are reachable (dataproxy doctor TARGET, for TubeMQ dataproxy topics), or raise"
            " delivery_timeout"
        )
        if trouble and tells_of_size(text):
            hint = _LIMIT_HINT
        return DeliveryExpired(f"{meaning} ({attempts} attempts){also}", hint=hint, details=details)
    return DeliveryFailed(f"{meaning}{also}", code=name, retriable=code == -4, details=details)


def delivered(fields: ResultFields, position: int, own_id: str | None = None) -> Delivered | Sent:
    """Return the Delivered or Sent of a message, or raise its DeliveryError."""
    if fields[0] not in (OUT_DELIVERED, OUT_SENT):
        raise delivery_error(fields, position, own_id)
    name = message_id(fields[8], position) if own_id is None else own_id
    made = Sent if fields[0] == OUT_SENT else Delivered
    return made(fields[5], fields[3], fields[6], fields[7], position, name)


def delivery_result(watch: Watch, number: int, fields: ResultFields) -> DeliveryResult:
    """Return what ``on_delivery`` gets for message ``number`` of a watch."""
    own_id = None if watch.own_ids is None else watch.own_ids[number]
    position = watch.first + number
    if fields[0] in (OUT_DELIVERED, OUT_SENT):
        found = delivered(fields, position, own_id)
        if isinstance(found, Sent):
            return DeliveryResult(watch.group_id, watch.stream_id, None, None, found)
        return DeliveryResult(watch.group_id, watch.stream_id, found, None)
    return DeliveryResult(watch.group_id, watch.stream_id, None, delivery_error(fields, position, own_id))


_INLONG_MARK = "&"
#: What a message of type 6 has in the place of attributes.
_NO_ATTRS = "_="


def _attributes(text: str, mark: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(mark) if "=" in pair)


def undelivered(
    group_id: str,
    stream_id: str,
    frame_attrs: str,
    item_attrs: str,
    dt_ms: int,
    body: bytes,
    position: int,
    fields: ResultFields,
    mark: str = "&",
) -> Undelivered:
    """Return one undelivered message from what its pack holds; ``mark`` stands between two attributes.

    Only InLong's attributes, between which ``&`` stands, have names with a meaning of their own.
    """
    if mark != _INLONG_MARK:
        attrs = {**_attributes(frame_attrs, mark), **_attributes(item_attrs, mark)}
        error = delivery_error(fields, position)
        return Undelivered(group_id, stream_id, body, message_id(fields[8], position), fields[3], error, attrs, dt_ms)
    attrs = {**_attributes(frame_attrs, mark), **unescape_attrs(_attributes(item_attrs, mark))}
    if item_attrs == _NO_ATTRS:
        del attrs["_"]
    own_id = attrs.pop("msgid", None)
    exact = attrs.pop("dtMs", None)
    error = delivery_error(fields, position, own_id)
    name = message_id(fields[8], position) if own_id is None else own_id
    when = dt_ms if exact is None else int(exact)
    return Undelivered(group_id, stream_id, body, name, fields[3], error, attrs, when)


def code_key(code: int) -> int | str:
    """Return the key of a core's code in ``Report.errors``: a server's number, or the word of a local code."""
    if code > 0:
        return code
    return _LOCAL.get(code, (str(code), ""))[0]
