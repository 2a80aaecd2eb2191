"""The order in which producers go through the same list of proxies."""

from collections import Counter

from dataproxy.producer.discovery.proxies import order_seed, proxy_order
from dataproxy.types import ResolvedEndpoint

PROXIES = [ResolvedEndpoint(f"10.0.0.{i}", 46801, 2, f"10.0.0.{i}", f"10.0.0.{i}:46801") for i in range(1, 5)]


def test_a_seed_has_one_order() -> None:
    for seed in (0, 1, 2**64 - 1):
        assert proxy_order(PROXIES, seed) == proxy_order(PROXIES[::-1], seed)
        assert sorted(proxy_order(PROXIES, seed)) == PROXIES


def test_each_proxy_is_at_each_place_for_a_fair_share_of_the_seeds() -> None:
    for place in range(4):
        found = Counter(proxy_order(PROXIES, seed)[place] for seed in range(4000))
        assert set(found) == set(PROXIES)
        assert all(800 < count < 1200 for count in found.values()), found


def test_the_order_of_the_others_stays_when_one_leaves() -> None:
    for seed in range(100):
        order = proxy_order(PROXIES, seed)
        for gone in PROXIES:
            assert proxy_order([p for p in PROXIES if p != gone], seed) == [p for p in order if p != gone]


def test_seeds_differ() -> None:
    assert len({order_seed() for _ in range(100)}) == 100
