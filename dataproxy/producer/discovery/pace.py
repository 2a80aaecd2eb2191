"""When a producer asks for its proxies again: at random times, so that producers that start together ask apart.

Pure: the time is an argument, in seconds of any steady clock, and so is the source of random numbers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["Schedule"]

_SOON_SECONDS: Final = 1.0  # span of the first wait where nothing is known, or no proxy is left; doubled each time
_SOON_MOST: Final = 10.0
_VARIED: Final = 0.1  # how far the usual wait is from `discovery_interval`, as a part of it


class Schedule:
    """Say which groups are due.  A round asks about all groups that are known; other groups have times of their own.

    After the start the first round comes at any moment of the interval, so that the questions of producers which
    started together are spread over it from then on.  Waits before repeated questions double from a second to ten, and
    each of them is a random part of its span.
    """

    def __init__(self, interval: float, rand: Callable[[], float] = random.random) -> None:
        self._interval = interval
        self._random = rand
        self._round_at = math.inf
        self._asked_at = -math.inf  # when the last round began
        self._single: dict[str, float] = {}  # group -> when to ask about it
        self._spans: dict[str, float] = {}  # group -> the last span of its waits
        self._hurry = 0.0  # the span of the next wait without a proxy; 0: all is well
        self._hurried = False  # the next round is planned for that reason

    def begin(self, now: float, first: float | None) -> None:
        """Plan the first round, in ``first`` seconds if that is given."""
        self._round_at = now + (self._interval * (0.1 + 0.9 * self._random()) if first is None else first)

    def want(self, group: str, now: float) -> None:
        """Ask about a group that nothing is known of at once."""
        self._single.setdefault(group, now)

    def answered(self, group: str) -> None:
        """Leave a group that is known now to the rounds."""
        self._single.pop(group, None)
        self._spans.pop(group, None)

    def failed(self, group: str, now: float) -> None:
        """Ask about a group again soon, because nothing is known of it."""
        self._spans[group] = span = self._longer(self._spans.get(group, 0.0))
        self._single[group] = now + self._part(span)

    def round_begins(self, now: float) -> None:
        """Note that a round begins."""
        self._asked_at = now
        self._hurried = False

    def round_ended(self, now: float, soon: bool = False) -> None:
        """Plan the next round; ``soon``: in at most ten seconds, because something is missing."""
        wait = min(self._interval, _SOON_MOST) if soon else self._interval
        self._round_at = now + wait * (1 - _VARIED + 2 * _VARIED * self._random())

    def at_once(self, now: float) -> None:
        """Plan a round for this moment."""
        self._round_at = now

    def hurry(self, now: float) -> None:
        """Plan a round at once, or, while no proxy can be reached for long, soon after the last one."""
        if self._hurried:
            return
        at = self._asked_at + self._part(self._hurry) if self._hurry else now
        self._round_at = min(self._round_at, max(at, now))
        self._hurry = self._longer(self._hurry)
        self._hurried = True

    def calm(self) -> None:
        """Note that each cluster has a connection again."""
        self._hurry = 0.0

    def due(self, now: float, known: Iterable[str]) -> tuple[list[str], bool]:
        """Return the groups to ask about now, each once, and whether this is a round."""
        single = [group for group, at in self._single.items() if at <= now]
        if self._round_at > now:
            return single, False
        return list(dict.fromkeys([*single, *known])), True

    def put_off(self, now: float) -> None:
        """Let everything that is due wait, after an error that says nothing about a group."""
        for group in self.due(now, ())[0]:
            self.failed(group, now)
        if self._round_at <= now:
            self.round_ended(now)

    def wait(self, now: float) -> float:
        """Return the seconds until the next group is due."""
        return max(0.0, min([self._round_at, *self._single.values()]) - now)

    def _longer(self, span: float) -> float:
        return min(max(2 * span, _SOON_SECONDS), _SOON_MOST, self._interval)

    def _part(self, span: float) -> float:
        return span * (0.1 + 0.9 * self._random())
