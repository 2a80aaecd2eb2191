"""Standbys: connected and without frames until they are needed; swaps for a loss, for an outlier, for load."""

from __future__ import annotations

from itertools import pairwise

from tests.native.probe_connections import Connections
from tests.unit.conn.test_choose import beat
from tests.unit.conn.test_outliers import MS, Talk, index
from tests.unit.conn.test_pool import CLASSES, SECOND, ack, connect_all, holder, write_all

FAR = 1000 * SECOND
LOST = 3
RESET = 104
SWAPPED = 17
BY_LOSS, BY_OUT, BY_LOAD = 1, 2, 3
LABELS = [f"p{i}:1" for i in range(10)]


def pool_of(labels: list[str], active: int, standbys: int, **config: object) -> Connections:
    """Return connections that are connected, some of them standbys."""
    pool = Connections(classes=CLASSES, reconnect_backoff=0, reconnect_backoff_max=0, **config)
    assert pool.endpoints(labels, active, 0, standbys=standbys) == 0
    connect_all(pool, 0)
    return pool


def roles(pool: Connections) -> tuple[set[str], set[str]]:
    """Return the proxies of the connections that take frames, and of the standbys."""
    every = [pool.connection(i) for i in range(pool.facts()["connections"])]
    return {c["peer"] for c in every if c["active"]}, {c["peer"] for c in every if c["standby"]}


def say_loads(pool: Connections, loads: dict[str, int], now: int) -> None:
    """Let each connection be told the load of its proxy."""
    pool.expire(now)
    for i in range(pool.facts()["connections"]):
        if pool.connection(i)["control"]:
            beat(pool, i, loads[pool.connection(i)["peer"]], now)


def test_a_standby_is_connected_and_takes_no_frames() -> None:
    pool = pool_of(LABELS, 4, 2)
    active, standby = roles(pool)
    assert (len(active), len(standby), active & standby) == (4, 2, set())
    assert pool.facts()["active"] == 4
    assert {pool.connection(pool.choose(0))["peer"] for _ in range(300)} == active


def test_a_standby_asks_for_the_load_as_soon_as_it_is_connected() -> None:
    pool = pool_of(LABELS, 2, 1)
    pool.expire(1000)
    assert [pool.connection(i)["control"] > 0 for i in range(3)] == [False, False, True]


def test_a_lost_connection_is_replaced_at_once_and_its_frames_move() -> None:
    pool = pool_of(LABELS, 2, 1)
    frame = pool.submit(1, 7, [b"x"], FAR, 0)
    at = holder(pool, 1)
    write_all(pool, at, 0)
    pool.lost(at, LOST, RESET, 1000)
    assert pool.facts()["active"] == 2
    assert pool.events[-1][:3] == (SWAPPED, "p2:1", BY_LOSS)
    assert pool.facts()["swaps"][BY_LOSS] == 1
    assert holder(pool, 1) != at
    pool.expire(2000)
    connect_all(pool, 3000)
    assert pool.connection(at)["standby"]
    assert pool.connection(at)["peer"] == "p3:1"  # one that no connection uses
    heir = holder(pool, 1)
    write_all(pool, heir, 4000)
    pool.feed(heir, ack(frame), 5000)
    assert len(pool.take_settled()) == 1


def test_a_new_standby_takes_the_place_of_a_connection_that_is_still_lost() -> None:
    pool = pool_of(["a:1", "b:1", "c:1"], 2, 0)
    pool.lost(index(pool, "a:1"), LOST, RESET, 0)
    pool.endpoints(["a:1", "b:1", "c:1"], 2, 1, standbys=1)
    connect_all(pool, 2)
    assert pool.facts()["active"] == 2


def test_the_place_of_an_outlier_is_taken_and_it_is_left_for_an_unused_proxy() -> None:
    pool = pool_of(LABELS, 4, 1, heartbeat=30 * SECOND)
    talk = Talk(pool)
    talk.rounds(40, {"p1:1": 200 * MS})
    assert pool.facts()["swaps"][BY_OUT] == 1
    active, _ = roles(pool)
    assert active == {"p0:1", "p2:1", "p3:1", "p4:1"}
    talk.rounds(20, {})
    connect_all(pool, talk.now)
    pool.expire(talk.now + SECOND)
    connect_all(pool, talk.now + SECOND)
    assert roles(pool) == (active, {"p5:1"})


def test_in_a_small_cluster_an_outlier_stays_connected() -> None:
    pool = pool_of(LABELS[:3], 3, 0, heartbeat=30 * SECOND)
    talk = Talk(pool)
    talk.rounds(60, {"p1:1": 200 * MS})
    assert pool.connection(index(pool, "p1:1"))["state"] == "active"
    assert pool.facts()["active"] == 3


def test_the_busiest_swaps_with_the_calmest_one_at_a_time() -> None:
    pool = pool_of(LABELS[:6], 4, 2, heartbeat=SECOND)
    loads = {"p0:1": 80, "p1:1": 70, "p2:1": 20, "p3:1": 20, "p4:1": 10, "p5:1": 12}
    swapped = []
    for second in range(1, 200):
        say_loads(pool, loads, second * SECOND)
        swapped.append(pool.facts()["swaps"][BY_LOAD])
    steps = [after - before for before, after in pairwise(swapped)]
    assert max(steps) == 1
    assert swapped[-1] == 2  # p0 and p1 have gone; no other difference is large enough
    assert roles(pool)[0] == {"p2:1", "p3:1", "p4:1", "p5:1"}
    said = [event for event in pool.events if event[0] == SWAPPED]
    assert said[0][1:] == ("p4:1", BY_LOAD, b"p0:1: load 80 against 10")
    times = [i for i, step in enumerate(steps) if step]
    assert times[1] - times[0] >= 30


def test_loads_that_differ_little_or_are_unknown_swap_nothing() -> None:
    for loads in ({f"p{i}:1": 50 + i for i in range(6)}, {f"p{i}:1": -1 for i in range(6)}):
        pool = pool_of(LABELS[:6], 4, 2, heartbeat=SECOND)
        for second in range(1, 200):
            say_loads(pool, loads, second * SECOND)
        assert pool.facts()["swaps"] == [0, 0, 0, 0]
        assert roles(pool)[0] == {"p0:1", "p1:1", "p2:1", "p3:1"}


def test_where_loads_are_known_standbys_go_through_all_proxies() -> None:
    pool = pool_of(LABELS, 2, 1, heartbeat=SECOND)
    seen = set()
    for second in range(1, 600):
        say_loads(pool, dict.fromkeys(LABELS, 50), second * SECOND)
        connect_all(pool, second * SECOND)
        seen |= roles(pool)[1]
    assert seen == set(LABELS[2:])


def test_a_list_without_room_for_standbys_uses_them() -> None:
    pool = pool_of(LABELS, 4, 2)
    active, standby = roles(pool)
    pool.endpoints(sorted(active | standby), 6, 1)
    connect_all(pool, 2)
    assert roles(pool) == (active | standby, set())
    assert pool.facts()["connections"] == 6


def test_more_standbys_than_wanted_are_closed() -> None:
    pool = pool_of(LABELS, 4, 2)
    pool.endpoints(LABELS, 4, 1)
    connect_all(pool, 2)
    assert roles(pool)[1] == set()
    assert sorted(pool.connection(i)["state"] for i in range(6)) == ["active"] * 4 + ["idle"] * 2


def test_some_connections_go_on_to_new_proxies_and_the_others_stay() -> None:
    pool = pool_of(LABELS[:8], 4, 0)
    before = roles(pool)[0]
    pool.endpoints(["n0:1", "n1:1", "n2:1", *LABELS[:8]], 4, 1)
    for now in range(2, 8):
        connect_all(pool, now * SECOND)
        pool.expire(now * SECOND)
    after = roles(pool)[0]
    assert len(after) == 4
    assert len(after - before) == 1  # a quarter at once
    assert (after - before) < {"n0:1", "n1:1", "n2:1"}


def test_where_every_proxy_is_in_use_a_longer_list_moves_nothing() -> None:
    pool = pool_of(LABELS[:3], 3, 0)
    pool.endpoints(["n0:1", *LABELS[:3]], 4, 1)
    connect_all(pool, 2)
    assert roles(pool)[0] == {"n0:1", *LABELS[:3]}
    assert [pool.connection(i)["connects"] for i in range(4)] == [1, 1, 1, 1]


def test_several_connections_to_few_proxies_of_many() -> None:
    pool = Connections(classes=CLASSES)
    pool.endpoints(LABELS, 6, 0, proxies=2, standbys=1)
    connect_all(pool, 0)
    active, standby = roles(pool)
    assert (len(active), len(standby), active & standby) == (2, 1, set())
    assert pool.facts()["active"] == 6
