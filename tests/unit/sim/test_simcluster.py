"""A small cluster under faults, by every way to choose: ``make sim-cluster`` is the large one, with the table."""

from __future__ import annotations

import pytest

from tests.simcluster.__main__ import missed
from tests.simcluster.scenarios import POLICIES, SCENARIOS, Cluster, play, smaller


def small(name: str, seed: int = 1) -> Cluster:
    """Return a scenario with fewer proxies and less time."""
    return smaller(SCENARIOS[name], proxies=40, producers=10, seconds=40, seed=seed)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_pack_is_delivered(name: str, seed: int) -> None:
    result = play(small(name, seed), "ours")
    assert result["sent"] > 15_000
    assert (result["failed"], result["pending"]) == (0, 0)
    assert result["delivered"] == result["sent"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slow_proxies_are_felt_half_as_much_as_by_turns(seed: int) -> None:
    results = {policy: play(small("10 % slow", seed), key) for policy, key in POLICIES.items()}
    assert results["ours"]["p99"] <= results["round robin"]["p99"] / 2, results
    assert sum(results["ours"]["outs"]) > 0
    assert sum(results["round robin"]["outs"]) == 0


def test_in_a_calm_cluster_nothing_is_out_and_nothing_swaps() -> None:
    result = play(small("calm"), "ours")
    assert (sum(result["outs"]), sum(result["swaps"]), result["resent"]) == (0, 0, 0)


def test_many_producers_spread_evenly() -> None:
    many = Cluster(producers=200, seconds=80, rate=10.0, service=20_000, workers=1)
    assert play(many, "ours")["spread"] <= 1.2
    assert play(smaller(many, active=8), "turn")["spread"] > 1.4  # what a small part of the proxies costs


def test_proxies_that_tell_their_load_get_even_loads_from_few_connections() -> None:
    told = Cluster(producers=100, seconds=400, rate=10.0, service=20_000, workers=1, proxies=50, active=8, loads=True)
    with_loads, without = play(told, "ours"), play(smaller(told, loads=False), "ours")
    assert with_loads["swaps"][3] > 0
    assert with_loads["spread"] < without["spread"] - 0.1


def test_a_seed_replays_exactly() -> None:
    assert play(small("all of it, clock steps"), "ours") == play(small("all of it, clock steps"), "ours")


def test_the_goals_can_be_missed() -> None:
    good = {"failed": 0, "pending": 0, "p99": 10.0}
    slow = {"10 % slow": {"ours": good, "round robin": {**good, "p99": 100.0}}}
    assert missed(slow, {"x": {"ours": 1.1}}) == []
    assert len(missed(slow, {"x": {"ours": 1.3}})) == 1
    bad = {"10 % slow": {"ours": {**good, "p99": 60.0, "failed": 1}, "round robin": good}}
    assert len(missed(bad, {"x": {"ours": 1.0}})) == 2
