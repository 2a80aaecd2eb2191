"""How many proxies are in use, and which part of them each executor gets."""

from __future__ import annotations

import pytest

from dataproxy.config import load_producer_config
from dataproxy.producer.shares import Share, active_of, shares


def made(proxies: int, **options: int) -> list[Share]:
    """Return the shares of a producer with these options."""
    return shares(load_producer_config("tcp://h:1", group_id="g", **options), proxies)


@pytest.mark.parametrize(
    ("wanted", "proxies", "active"),
    [(0, 1, 1), (0, 8, 8), (0, 9, 8), (0, 13, 8), (0, 30, 20), (0, 90, 60), (0, 500, 64), (3, 100, 3), (30, 10, 10)],
)
def test_how_many_are_in_use(wanted: int, proxies: int, active: int) -> None:
    assert active_of(wanted, proxies) == active


def test_a_small_cluster_has_one_connection_for_each_proxy_and_no_standby() -> None:
    assert made(3) == [Share(3, 3, 0, 0, 3)]
    assert made(8) == [Share(8, 8, 0, 0, 8)]


def test_connections_alone_make_no_standby_of_the_other_proxies() -> None:
    assert made(3, connections=2) == [Share(2, 2, 0, 0, 2)]


def test_a_large_cluster_has_standbys_behind_the_proxies_in_use() -> None:
    assert made(90) == [Share(60, 60, 2, 0, 60)]
    assert made(100, active_proxies=8, standby_proxies=4) == [Share(8, 8, 4, 0, 8)]
    assert made(9, active_proxies=8, standby_proxies=4) == [Share(8, 8, 1, 0, 8)]
    assert made(100, standby_proxies=0)[0].standbys == 0


def test_more_connections_than_proxies_in_use() -> None:
    assert made(100, connections=16, active_proxies=4) == [Share(16, 4, 2, 0, 4)]
    assert made(2, connections=5) == [Share(5, 2, 0, 0, 2)]


def test_executors_begin_at_different_proxies_and_each_has_a_standby() -> None:
    parts = made(100, executors=4, active_proxies=8, standby_proxies=2)
    assert [part.connections for part in parts] == [2, 2, 2, 2]
    assert [part.offset for part in parts] == [0, 2, 4, 6]
    assert [(part.standbys, part.standby_offset) for part in parts] == [(1, 8), (1, 9), (1, 10), (1, 11)]


def test_an_executor_with_several_connections_has_several_proxies() -> None:
    """Else the loss of one proxy would leave it without any."""
    assert [(part.connections, part.proxies, part.offset) for part in made(2, executors=2, connections=4)] == [
        (2, 2, 0),
        (2, 2, 0),
    ]


@pytest.mark.parametrize("executors", [1, 2, 3, 5])
@pytest.mark.parametrize("connections", [0, 1, 6, 16])
@pytest.mark.parametrize("active", [0, 1, 4, 9])
def test_executors_stay_within_the_proxies_in_use(executors: int, connections: int, active: int) -> None:
    parts = made(40, executors=executors, connections=connections, active_proxies=active)
    most = active_of(active, 40)
    assert all(part.offset >= 0 and part.offset + part.proxies <= most for part in parts)
    assert sum(part.connections for part in parts) == max(executors, connections or most)


def test_each_executor_has_a_connection_where_there_are_fewer_proxies() -> None:
    parts = made(2, executors=3)
    assert [part.connections for part in parts] == [1, 1, 1]
    assert {part.offset % 2 for part in parts} == {0, 1}
