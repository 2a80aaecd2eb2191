"""This machine's clock against those of the Managers and proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy.doctor.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataproxy.doctor.findings import ManagerReport, ProxyReport

__all__ = ["clock_findings"]

_TOLERATED_SECONDS: Final = 5.0  # others tell whole seconds, and an answer takes its time
_GRAVE_SECONDS: Final = 3600.0
_MEANS: Final = (
    "messages without a data time of their own carry this machine's time: with a clock that is off they land in the"
    " wrong hour or day of the tables behind, and count as late or early there"
)
_SHOWN: Final = 4


class _Clock(NamedTuple):
    subject: str
    offset: float


def clock_findings(managers: Sequence[ManagerReport], proxies: Sequence[ProxyReport]) -> list[Finding]:
    """Return who is off: this machine if most of the others say so, else each of those that differ."""
    clocks = [_Clock(one.url, one.clock_offset) for one in managers if one.clock_offset is not None]
    clocks += [_Clock(one.name, one.clock_offset) for one in proxies if one.clock_offset is not None]
    if not clocks:
        return []
    fast = [one for one in clocks if one.offset > _TOLERATED_SECONDS]
    slow = [one for one in clocks if one.offset < -_TOLERATED_SECONDS]
    for group in (fast, slow):
        if len(group) * 2 > len(clocks):
            others = [one for one in clocks if one not in group and abs(one.offset) > _TOLERATED_SECONDS]
            return [_ours(group, len(clocks)), *map(_theirs, others)]
    if fast or slow:
        return [_theirs(one) for one in (*fast, *slow)]
    worst = max(abs(one.offset) for one in clocks)
    text = f"within {max(worst, 1.0):.0f} s of {_named(clocks)}"
    return [Finding("clock", "this machine", Level.OK, text)]


def _ours(group: Sequence[_Clock], all_of_them: int) -> Finding:
    offset = sorted(one.offset for one in group)[len(group) // 2]
    way = "behind" if offset > 0 else "ahead of"
    others = "" if len(group) == all_of_them else f" ({len(group)} of {all_of_them} say so)"
    advice = "set this machine's clock by a time service: timedatectl, chronyc tracking"
    if all_of_them == 1:
        advice = "see which of the two is off (timedatectl, chronyc tracking), and have it set by a time service"
    return Finding(
        "clock", "this machine", _level(offset), f"{span(abs(offset))} {way} {_named(group)}{others}", _MEANS, advice
    )


def _theirs(one: _Clock) -> Finding:
    way = "ahead of" if one.offset > 0 else "behind"
    return Finding(
        "clock", one.subject, Level.WARNING, f"its clock is {span(abs(one.offset))} {way} this machine's",
        "receive times that this server writes are off, and what compares them with data times is misled",
        "have its clock set by a time service",
    )  # fmt: skip


def _level(offset: float) -> Level:
    return Level.ERROR if abs(offset) > _GRAVE_SECONDS else Level.WARNING


def _named(clocks: Sequence[_Clock]) -> str:
    more = f" and {len(clocks) - _SHOWN} more" if len(clocks) > _SHOWN else ""
    return ", ".join(one.subject for one in clocks[:_SHOWN]) + more


def span(seconds: float) -> str:
    """Return a time in words: seconds, and larger units beside them."""
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds:,.0f} s ({seconds / size:.1f} {unit})"
    return f"{seconds:.0f} s"
