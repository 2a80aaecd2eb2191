"""Rules between options.  A default gives way to what somebody chose; two choices that clash are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataproxy.config.option import Rule
from dataproxy.config.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FRAME_OVERHEAD_BYTES", "HUB_RULES", "PRODUCER_RULES"]

#: Room that ``max_frame_bytes`` keeps for header, group and stream names around a pack's body.
FRAME_OVERHEAD_BYTES: Final = 1024

_LONGEST_SILENCE: Final = 3600.0


def _not_above(small: str, large: str, show: Callable[[Any], str], *, margin: int = 0, either: bool = False) -> Rule:
    """Return the rule ``small + margin <= large``; defaults give way, ``large`` only with ``either``."""
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


def _heartbeats_in_time(values: Mapping[str, Any]) -> str | None:
    silence = values["heartbeat_interval"] * values["heartbeat_retries"]
    if values["heartbeat"] == "off" or silence <= _LONGEST_SILENCE:
        return None
    return (
        f"heartbeat_retries ({values['heartbeat_retries']}) times heartbeat_interval"
        f" ({format_duration(values['heartbeat_interval'])}) lets a dead connection live {format_duration(silence)},"
        f" allowed is {format_duration(_LONGEST_SILENCE)}; lower one of them"
    )


def _waits(values: Mapping[str, Any]) -> str | None:
    if values["on_full"] == "block":
        return None
    return (
        f"max_block ({format_duration(values['max_block'])}) has no meaning with on_full={values['on_full']!r},"
        " which never waits; leave max_block out, or choose on_full='block'"
    )


def _whole_credentials(values: Mapping[str, Any]) -> str | None:
    if bool(values["manager_secret_id"]) == bool(values["manager_secret_key"]):
        return None
    have, lack = "manager_secret_id", "manager_secret_key"
    if values[lack]:
        have, lack = lack, have
    return f"{have} is given without {lack}; give both or none"


#: Rules of the producer, in the order in which they are applied.
PRODUCER_RULES: Final[tuple[Rule, ...]] = (
    _not_above("batch_bytes", "max_frame_bytes", format_size, margin=FRAME_OVERHEAD_BYTES),
    _not_above("batch_bytes", "buffer_bytes", format_size),
    _not_above("ack_timeout", "delivery_timeout", format_duration),
    _not_above("linger", "delivery_timeout", format_duration),
    _not_above("retry_backoff", "retry_backoff_max", format_duration, either=True),
    _not_above("reconnect_backoff", "reconnect_backoff_max", format_duration, either=True),
    Rule(("max_block", "on_full"), _waits, {"max_block": lambda _values: 0.0}),
    Rule(("heartbeat_interval", "heartbeat_retries"), _heartbeats_in_time),
    Rule(("manager_secret_id", "manager_secret_key"), _whole_credentials),
)

#: Rules of the hub.
HUB_RULES: Final[tuple[Rule, ...]] = (_not_above("max_frame_bytes", "queue_bytes", format_size, either=True),)
