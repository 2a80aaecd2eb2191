"""Rules between options.  Defaults are adapted to values that the user set; conflicts between set values are errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from dataproxy.config.option import Rule
from dataproxy.config.units import format_duration, format_size
from dataproxy.messagetypes import has_item_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FRAME_OVERHEAD_BYTES", "HUB_RULES", "LARGEST_FRAME_BYTES", "LEAST_FRAME_BYTES", "PRODUCER_RULES"]

#: Room that ``max_frame_bytes`` keeps for header, group and stream names around a pack's body.
FRAME_OVERHEAD_BYTES: Final = 1024

#: Largest frame of the protocol: the highest value of a server's option ``max-msg-length``.
LARGEST_FRAME_BYTES: Final = 20 << 20
#: Smallest frame limit that a producer works with; a Manager's limit below it is raised to it.
LEAST_FRAME_BYTES: Final = 2 << 10

_LONGEST_SILENCE: Final = 3600.0
_LINGER_PART: Final = 10  # a default linger is at most delivery_timeout divided by this
_ROUNDING: Final = 1e-6
_TOKEN_SHORTEST: Final = 16
_LAST_PORT: Final = 65535


def _not_above(small: str, large: str, show: Callable[[Any], str], *, margin: int = 0, either: bool = False) -> Rule:
    """Return the rule ``small + margin <= large``; defaults of ``small`` change, with ``either`` also ``large``."""
    extra = f" plus {margin} bytes of overhead" if margin else ""

    def check(values: Mapping[str, Any]) -> str | None:
        if values[small] + margin <= values[large]:
            return None
        return (
            f"{small} ({show(values[small])}){extra} is above {large} ({show(values[large])});"
            f" lower {small} or raise {large}"
        )

    yields: dict[str, Callable[[Mapping[str, Any]], Any]] = {small: lambda values: values[large] - margin}
    if either:
        yields[large] = lambda values: values[small] + margin
    return Rule((small, large), check, yields)


def _lingers_long(values: Mapping[str, Any]) -> str | None:
    return "" if values["linger"] * _LINGER_PART > values["delivery_timeout"] else None


def _attempts_rare(values: Mapping[str, Any]) -> str | None:
    return "" if values["ack_timeout"] > _third(values) else None


def _connects_long(values: Mapping[str, Any]) -> str | None:
    return "" if values["connect_timeout"] > _third(values) else None


def _third(values: Mapping[str, Any]) -> float:
    """Return a third of ``delivery_timeout - linger`` (s, in whole ms): time for three attempts or connects."""
    return float(math.floor((values["delivery_timeout"] - values["linger"]) / 3 * 1000 + _ROUNDING) / 1000)


def _another_attempt(values: Mapping[str, Any]) -> str | None:
    ack, delivery = values["ack_timeout"], values["delivery_timeout"]
    if 2 * ack <= delivery + _ROUNDING:
        return None
    return (
        f"ack_timeout ({format_duration(ack)}) is above half of delivery_timeout ({format_duration(delivery)}), so a"
        f" frame without an answer has no time for another attempt; lower ack_timeout to"
        f" {format_duration(delivery / 2)}, or raise delivery_timeout to {format_duration(2 * ack)}"
    )


def _attempts_after_linger(values: Mapping[str, Any]) -> str | None:
    linger, most = values["linger"], _longest_linger(values)
    if linger <= most + _ROUNDING:
        return None
    return (
        f"linger ({format_duration(linger)}) is above delivery_timeout ({format_duration(values['delivery_timeout'])})"
        f" less one and a half ack_timeout ({format_duration(values['ack_timeout'])}), so a frame without an answer"
        f" has no time for another attempt; lower linger to {format_duration(most)}, or raise delivery_timeout"
    )


def _longest_linger(values: Mapping[str, Any]) -> float:
    return float(values["delivery_timeout"] - 1.5 * values["ack_timeout"])


def _heartbeats_in_time(values: Mapping[str, Any]) -> str | None:
    silence = values["heartbeat_interval"] * values["heartbeat_retries"]
    if values["heartbeat"] == "off" or silence <= _LONGEST_SILENCE:
        return None
    return (
        f"heartbeat_retries ({values['heartbeat_retries']}) times heartbeat_interval"
        f" ({format_duration(values['heartbeat_interval'])}) keeps a dead connection for {format_duration(silence)},"
        f" allowed is {format_duration(_LONGEST_SILENCE)}; lower one of them"
    )


def _waits(values: Mapping[str, Any]) -> str | None:
    if values["on_full"] == "block":
        return None
    return (
        f"max_block ({format_duration(values['max_block'])}) has no effect with on_full={values['on_full']!r},"
        " which never waits; leave max_block out, or choose on_full='block'"
    )


def _lines_are_bare(values: Mapping[str, Any]) -> str | None:
    if has_item_attributes(values["message_type"]) or not values["exact_time"]:
        return None
    return (
        "message_type 3 has no attributes of single messages, which exact_time needs; leave exact_time out, or choose"
        " message_type 7 or 5"
    )


def _together(first: str, second: str) -> Rule:
    """Return the rule that either both options are given or none."""

    def check(values: Mapping[str, Any]) -> str | None:
        if bool(values[first]) == bool(values[second]):
            return None
        have, lack = (second, first) if values[second] else (first, second)
        return f"{have} is given without {lack}; give both or none"

    return Rule((first, second), check)


def _token_is_long(values: Mapping[str, Any]) -> str | None:
    token = values["token"]
    if not token or (len(token) >= _TOKEN_SHORTEST and token.isascii() and token.isprintable() and " " not in token):
        return None
    return (
        f"token is too short or does not fit into an HTTP header; give {_TOKEN_SHORTEST} printable ASCII characters"
        " or more without blanks, or none"
    )


#: Rules of the producer, in the order in which they are applied.
PRODUCER_RULES: Final[tuple[Rule, ...]] = (
    _not_above("batch_bytes", "max_frame_bytes", format_size, margin=FRAME_OVERHEAD_BYTES),
    _not_above("batch_bytes", "buffer_bytes", format_size),
    Rule(
        ("linger", "delivery_timeout"),
        _lingers_long,
        {"linger": lambda values: values["delivery_timeout"] / _LINGER_PART},
        binding=False,
    ),
    Rule(("ack_timeout", "delivery_timeout", "linger"), _attempts_rare, {"ack_timeout": _third}, binding=False),
    Rule(("connect_timeout", "delivery_timeout", "linger"), _connects_long, {"connect_timeout": _third}, binding=False),
    _not_above("linger", "delivery_timeout", format_duration),
    Rule(
        ("ack_timeout", "delivery_timeout"),
        _another_attempt,
        {"ack_timeout": lambda values: values["delivery_timeout"] / 2},
    ),
    Rule(("linger", "ack_timeout", "delivery_timeout"), _attempts_after_linger, {"linger": _longest_linger}),
    _not_above("retry_backoff", "retry_backoff_max", format_duration, either=True),
    _not_above("reconnect_backoff", "reconnect_backoff_max", format_duration, either=True),
    Rule(("max_block", "on_full"), _waits, {"max_block": lambda _values: 0.0}),
    Rule(("heartbeat_interval", "heartbeat_retries"), _heartbeats_in_time),
    _together("manager_secret_id", "manager_secret_key"),
    Rule(("message_type", "exact_time"), _lines_are_bare),
)


def _ports_end(values: Mapping[str, Any]) -> str | None:
    last = values["port"] + values["listeners"] - 1
    if not values["port"] or last <= _LAST_PORT:
        return None
    return (
        f"port ({values['port']}) and listeners ({values['listeners']}) need ports up to {last}, the last is"
        f" {_LAST_PORT}; lower one of them"
    )


#: Rules of the hub.
HUB_RULES: Final[tuple[Rule, ...]] = (
    _not_above("max_frame_bytes", "queue_bytes", format_size, either=True),
    _together("secret_id", "secret_key"),
    Rule(("token",), _token_is_long),
    Rule(("port", "listeners"), _ports_end),
)
