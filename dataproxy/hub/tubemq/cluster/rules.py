"""Flow rules and tokens, which a master hands to clients with its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dataproxy.hub.tubemq.cluster.answers import NONE
from dataproxy.wire.tubemq.flow import FlowRules, read_flow_rules

__all__ = ["Rules", "Tokens"]

_BLANK: Final = " "
_KNOWN: Final = 6


class Rules:
    """Texts of flow rules, of the cluster and of groups, each with a number that tells its version.  One thread.

    Numbers are higher than ``last``: clients that know one from an earlier master must not take it for the same.
    ``follow`` is called with all rules that are set, and the group, None for the cluster.
    """

    def __init__(self, last: int, follow: Callable[[str | None, FlowRules], None] = lambda group, rules: None) -> None:
        self._cluster = (_BLANK, NONE)
        self._groups: dict[str, tuple[str, int]] = {}
        self._last, self._follow = last, follow

    def set(self, text: str, group: str | None = None) -> None:
        """Set the rules of a group, or of the cluster; a blank text has none.  Raises ValueError for no rules."""
        self._follow(group, read_flow_rules(text))
        self._last += 1
        found = (text, self._last) if text.strip() else (_BLANK, NONE)
        if group is None:
            self._cluster = found
        elif text.strip():
            self._groups[group] = found
        else:
            self._groups.pop(group, None)

    @property
    def of_cluster(self) -> str:
        """Return the text of the cluster's rules, "" if there are none."""
        return self._cluster[0].strip()

    def of_groups(self) -> dict[str, str]:
        """Return the texts of the groups that have rules of their own, by group."""
        return {name: text for name, (text, _) in sorted(self._groups.items())}

    def raise_numbers(self, least: int) -> None:
        """Give all texts new numbers, not below ``least``: clients may know the present ones from another master."""
        self._last = max(self._last, least)
        for group, (text, number) in [(None, self._cluster), *self._groups.items()]:
            if number != NONE:
                self.set(text, group)

    def tell(self, answer: Any, known: Any, group: str) -> None:
        """Put the rules into an answer; a text only for who has another version (``known`` has the numbers)."""
        for field, (text, number) in (
            ("defFlow", self._cluster), ("groupFlow", self._groups.get(group, (_BLANK, NONE))),
        ):  # fmt: skip
            setattr(answer, f"{field}CheckId", number)
            has = getattr(known, f"{field}CheckId") == number
            setattr(answer, f"{field}ControlInfo", _BLANK if has else text)
        answer.qryPriorityId = NONE

    def tell_broker(self, answer: Any, known: int) -> None:
        """Put the rules of the cluster into an answer to a broker, which knows the version ``known``."""
        text, number = self._cluster
        answer.flowCheckId = number
        answer.flowControlInfo = _BLANK if known == number else text
        answer.qryPriorityId = NONE


class Tokens:
    """Numbers that show a broker that a client has spoken to the master lately: a new one in every period.

    Hubs of a cluster have the same ``first``, and the same ``begin`` in the time of day; ``ahead``: periods by which
    another hub's clock may be early.
    """

    def __init__(self, first: int, period_s: float, begin: float, ahead: int = 0) -> None:
        self._first, self._period_s, self._begin, self._ahead = first, period_s, begin, ahead

    def newest(self, now: float) -> int:
        """Return what clients get."""
        return self._first + int((now - self._begin) / self._period_s)

    def known(self, now: float) -> range:
        """Return what brokers take, the newest last."""
        newest = self.newest(now)
        return range(max(self._first, newest - _KNOWN + 1), newest + 1 + self._ahead)
