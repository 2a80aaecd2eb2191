"""A short run of what ``make siege`` does for long: what it judges by the clock is left to it."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.hostile import BESIEGERS
from tests.campaigns.siege.memory import bound
from tests.campaigns.siege.rounds import LEAST_SHARE, Figures, besiege, judge


def test_a_hub_under_siege_loses_nothing_and_keeps_its_bounds(tmp_path: Path) -> None:
    figures = besiege(tmp_path, seed=3, rounds=1, seconds=2.0, say=print, rate=500.0)
    assert figures.wrong == []
    assert set(figures.besiegers) == set(BESIEGERS)
    assert figures.produced["accepted"] == figures.read["done"] > 0
    assert 0 < figures.own <= figures.bound
    assert len(figures.http) > 50


def good() -> Figures:
    figures = Figures(parts=bound(50 << 20), own=200 << 20, resident=300 << 20, file=100 << 20)
    figures.produced = {"done": 100, "accepted": 100, "failed": 0, "expired": 0, "resent": 0}
    figures.read = {"done": 100, "missing": 0, "again": 0, "damaged": 0}
    figures.alone = {"produce": [10.0, 20.0, 10.0], "read": [10.0, 20.0, 10.0]}
    figures.besieged = {"produce": [10.0, 9.0, 5.0], "read": [10.0, 20.0, 4.0]}
    return figures


def test_what_must_not_be_is_seen() -> None:
    numbers = list(range(100))

    def seen(found: list[int] = numbers, said: str = "", **changes: object) -> list[str]:
        figures = good()
        for name, value in changes.items():
            part = getattr(figures, name)
            setattr(figures, name, {**part, **value} if isinstance(value, dict) else value)
        judge(figures, found, said)
        return figures.wrong + figures.slow

    assert seen() == []
    for changes in (
        {"produced": {"expired": 1}}, {"produced": {"done": 99}}, {"read": {"missing": 1}}, {"read": {"damaged": 1}},
        {"read": {"done": 99}}, {"own": 1 << 40}, {"resident": 1 << 40}, {"unfair": {"x": 1}},
    ):  # fmt: skip
        assert len(seen(**changes)) == 1, changes
    assert "not in the store" in seen(numbers[:50] + numbers[51:])[0]
    assert seen(numbers[50:]) == [], "retention takes the oldest"
    assert "twice" in seen([*numbers, 7])[0]
    assert seen([*numbers, 7], produced={"resent": 1}) == []
    assert "says" in seen(said="Traceback (most recent call last):")[0]
    assert good().share("produce") == LEAST_SHARE
    assert "of its rate" in seen(besieged={"read": [1.0, 1.0, 1.0]})[0]
