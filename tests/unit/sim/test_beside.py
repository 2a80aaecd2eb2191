"""What messages have a right to while a healthy proxy, or a slow link, is there."""

from __future__ import annotations

import os

import pytest

from tests.sim.beside import after_a_standstill, beside_a_dead_one, over_a_slow_link
from tests.sim.cluster import Cluster

SEEDS = 100 if os.environ.get("DATAPROXY_SANITIZER") else 400
SLICES = 10


@pytest.mark.parametrize("slice_", range(SLICES))
def test_nothing_expires_beside_a_healthy_proxy(slice_: int) -> None:
    for seed in range(slice_, SEEDS, SLICES):
        counts = Cluster(beside_a_dead_one(seed)).run()
        lost = (counts["expired"], counts["failed"], counts["dropped"])
        assert lost == (0, 0, 0), f"seed {seed}: {beside_a_dead_one(seed).options}"


def test_the_dead_one_had_frames() -> None:
    assert sum(Cluster(beside_a_dead_one(seed)).run()["retries"] for seed in range(20)) > 20


@pytest.mark.parametrize("seed", range(12))
def test_a_slow_connection_is_kept_and_nothing_is_sent_twice_over_it(seed: int) -> None:
    counts = Cluster(over_a_slow_link(seed)).run()
    assert (counts["retries"], counts["twice"], counts["connections"]) == (0, 0, 1)
    assert counts["stored"] >= 5


@pytest.mark.parametrize("seed", range(8))
def test_connections_are_not_judged_by_answers_that_nobody_has_read(seed: int) -> None:
    counts = Cluster(after_a_standstill(seed)).run()
    assert (counts["retries"], counts["twice"], counts["connections"]) == (0, 0, 150)
    assert counts["stored"] == 301
