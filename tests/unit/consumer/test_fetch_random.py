"""Laws of a reader under random faults; ``run`` plays one seed."""

from __future__ import annotations

import pytest

from tests.support.fetchplay import LAWS, Broken, Play

SEEDS = 600
STEPS = 200
REPLAY = 'python -c "from tests.unit.consumer.test_fetch_random import run; run({seed}, {mistake!r})"'


def run(seed: int, mistake: str = "") -> Play:
    """Play one seed; raise Broken, with how to replay it, if a law does not hold."""
    play = Play(seed, mistake)
    try:
        for _ in range(STEPS):
            play.step()
        play.finish()
    except (AssertionError, RuntimeError, ValueError) as error:
        raise Broken(f"{error}\nreplay: {REPLAY.format(seed=seed, mistake=mistake)}") from error
    return play


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_seeds(first: int) -> None:
    outcomes = set()
    for seed in range(first, first + 100):
        outcomes |= {last[0] for _, last in run(seed).outcomes}
    assert outcomes == {"confirmed", "rolled_back", "expired"}


@pytest.mark.parametrize("mistake", LAWS)
def test_mistakes_break_laws(mistake: str) -> None:
    found = (broken_by(seed, mistake) for seed in range(SEEDS))
    seed, text = next((seed, text) for seed, text in enumerate(found) if text.startswith(LAWS[mistake]))
    assert f"run({seed}, '{mistake}')" in text


def broken_by(seed: int, mistake: str) -> str:
    """Return which law a seed breaks; nothing if it breaks none."""
    try:
        run(seed, mistake)
    except Broken as error:
        return str(error)
    return ""
