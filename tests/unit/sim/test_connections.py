"""Seeded simulation of connections against proxies that misbehave: ``python -m tests.sim --connections`` runs more."""

import os

import pytest

from tests.sim.world import World

SEEDS = 200 if os.environ.get("DATAPROXY_SANITIZER") else 2000
SLICES = 20


@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_pack_is_settled_once_in_time_and_truthfully(slice_: int) -> None:
    for seed in range(slice_, SEEDS, SLICES):
        World(seed).run()


def test_a_seed_replays_exactly() -> None:
    assert [World(seed).run() for seed in range(20)] == [World(seed).run() for seed in range(20)]


def test_the_seeds_reach_every_outcome() -> None:
    totals = [World(seed).run() for seed in range(100)]
    for key in ("delivered", "failed", "expired", "retries"):
        assert sum(total[key] for total in totals) > 50, key
