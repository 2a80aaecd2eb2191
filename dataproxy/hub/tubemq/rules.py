"""Flow rules and tokens, which a master hands to clients with its answers."""

from __future__ import annotations

from typing import Any, Final

from dataproxy.hub.tubemq.answers import NONE
from dataproxy.wire.tubemq.flow import read_flow_rules

__all__ = ["Rules", "Tokens"]

_BLANK: Final = " "
_KNOWN: Final = 6


class Rules:
    """Texts of flow rules, of the cluster and of groups, each with a number that tells its version.  One thread.

    Numbers are higher than ``last``: clients that know one from an earlier master must not take it for the same.
    """

    def __init__(self, last: int) -> None:
        self._cluster = (_BLANK, NONE)
        self._groups: dict[str, tuple[str, int]] = {}
        self._last = last

    def set(self, text: str, group: str | None = None) -> None:
        """Set the rules of a group, or of the cluster; a blank text has none.  Raises ValueError for no rules."""
        read_flow_rules(text)
        self._last += 1
        found = (text, self._last) if text.strip() else (_BLANK, NONE)
        if group is None:
            self._cluster = found
        elif text.strip():
            self._groups[group] = found
        else:
            self._groups.pop(group, None)

    def tell(self, answer: Any, known: Any, group: str) -> None:
        """Put the rules into an answer; a text only for who has another version (``known`` has the numbers)."""
        for field, (text, number) in (
            ("defFlow", self._cluster), ("groupFlow", self._groups.get(group, (_BLANK, NONE))),
        ):  # fmt: skip
            setattr(answer, f"{field}CheckId", number)
            has = getattr(known, f"{field}CheckId") == number
            setattr(answer, f"{field}ControlInfo", _BLANK if has else text)
        answer.qryPriorityId = NONE


class Tokens:
    """Numbers that show a broker that a client has spoken to the master lately: a new one in every period."""

    def __init__(self, first: int, period_s: float, now: float) -> None:
        self._first, self._period_s, self._begin = first, period_s, now

    def newest(self, now: float) -> int:
        """Return what clients get."""
        return self._first + int((now - self._begin) / self._period_s)

    def known(self, now: float) -> range:
        """Return what brokers take."""
        newest = self.newest(now)
        return range(max(self._first, newest - _KNOWN + 1), newest + 1)
