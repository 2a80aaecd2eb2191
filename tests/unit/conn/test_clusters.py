"""Packs of a group go to connections of the group's cluster, wait for them, and hold up nobody else."""

from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import CLASSES, SECOND, ack, connect_all, write_all

EAST = (1, [("a:1", 0), ("b:1", 0)], 2)
WEST = (2, [("c:1", 0)], 1)
LATER = 100 * SECOND
NODE = 1  # a refusal for a reason of the proxy: the frame is sent again


def opened(parts, groups) -> Connections:
    """Return a pool that is connected to these clusters."""
    pool = Connections(classes=CLASSES, ack_timeout=10 * SECOND)
    pool.clusters(parts, groups, 0)
    connect_all(pool, 0)
    return pool


def queues(pool) -> dict[str, list[int]]:
    """Return which packs wait on or were written to which proxy."""
    found: dict[str, list[int]] = {}
    for i in range(pool.facts()["connections"]):
        one = pool.connection(i)
        found.setdefault(one["peer"], []).extend([*one["queue"], *one["flight"]])
    return found


def send(pool, idents, group, now=0) -> None:
    for ident in idents:
        pool.submit(ident, ident, [b"x"], LATER, now, group=group)


def test_each_cluster_has_its_connections() -> None:
    pool = opened([EAST, WEST], [1, 2])
    assert sorted(pool.connection(i)["peer"] for i in range(3)) == ["a:1", "b:1", "c:1"]
    assert pool.facts()["active"] == 3


def test_packs_go_to_the_cluster_of_their_group_alone() -> None:
    pool = opened([EAST, WEST], [1, 2])
    send(pool, range(20), 0)
    send(pool, range(20, 30), 1)
    found = queues(pool)
    assert found["c:1"] == list(range(20, 30))
    assert sorted(found["a:1"] + found["b:1"]) == list(range(20))
    assert min(len(found["a:1"]), len(found["b:1"])) >= 5, "both share the packs of their cluster"


def test_without_groups_the_one_cluster_takes_every_pack() -> None:
    pool = opened([EAST], None)
    send(pool, range(15), 0)
    send(pool, range(15, 30), 3)
    assert all(queues(pool).values())


def test_a_group_that_is_not_known_yet_waits_and_counts_as_no_work() -> None:
    pool = opened([EAST], [1, -1])
    send(pool, range(5), 1)  # known as a group, not where it goes
    send(pool, range(5, 10), 7)  # not known at all
    send(pool, range(10, 13), 0)
    facts = pool.facts()
    assert (facts["waiting"], facts["aside"], facts["unwritten"]) == (10, 10, 3)
    pool.clusters([EAST, WEST], [1, 2], SECOND)
    connect_all(pool, SECOND)
    assert queues(pool)["c:1"] == list(range(5))
    facts = pool.facts()
    assert (facts["waiting"], facts["aside"], facts["unwritten"]) == (5, 5, 8)


def test_a_group_may_turn_out_to_be_of_a_cluster_that_is_connected() -> None:
    pool = opened([WEST], [2])
    send(pool, [1, 2], 1)
    pool.clusters([WEST], [2, 2], SECOND)
    assert queues(pool) == {"c:1": [1, 2]}
    assert pool.facts()["connections"] == 1


def test_a_cluster_without_a_connection_holds_up_no_other() -> None:
    pool = opened([EAST, WEST], [1, 2])
    west = next(i for i in range(3) if pool.connection(i)["peer"] == "c:1")
    pool.lost(west, 3, 104, 0)
    send(pool, range(10), 1)
    send(pool, range(10, 12), 0)
    facts = pool.facts()
    assert (facts["waiting"], facts["aside"], facts["unwritten"]) == (10, 10, 2)
    pool.expire(pool.next_due())
    connect_all(pool, 5 * SECOND)
    assert queues(pool)["c:1"] == list(range(10)), "in the order in which they came"


def test_frames_of_a_lost_connection_stay_in_their_cluster() -> None:
    pool = opened([EAST, WEST], [1, 2])
    send(pool, range(6), 0)
    for i in range(3):
        write_all(pool, i, 0)
    first = next(i for i in range(3) if pool.connection(i)["peer"] == "a:1")
    pool.lost(first, 3, 104, SECOND)
    while (due := pool.next_due()) < 3 * SECOND:  # some wait for their next attempt
        pool.expire(due)
    found = queues(pool)
    assert "c:1" not in found or found["c:1"] == []
    assert sorted(found["b:1"] + found.get("a:1", [])) == list(range(6))


def test_a_lost_connection_returns_to_a_proxy_of_its_cluster() -> None:
    pool = opened([EAST, WEST], [1, 2])
    for round_ in range(1, 6):
        now = round_ * 100 * SECOND
        for i in range(3):
            if pool.connection(i)["active"]:
                pool.lost(i, 3, 104, now)
        for _ in range(20):
            pool.expire(now + 20 * SECOND)
        connect_all(pool, now + 20 * SECOND)
        peers = sorted(pool.connection(i)["peer"] for i in range(3))
        assert peers[-1] == "c:1"
        assert set(peers) <= {"a:1", "b:1", "c:1"}


def test_a_cluster_with_a_new_number_moves_everything_gently() -> None:
    pool = opened([WEST], [2])
    frame = pool.submit(1, 7, [b"x"], LATER, 0, group=0)
    write_all(pool, 0, 0)
    pool.clusters([(3, WEST[1], 1)], [3], SECOND)  # the same proxy
    connect_all(pool, SECOND)
    assert pool.connection(0)["retired"]
    assert pool.connection(0)["flight"] == [1]
    send(pool, [2], 0, SECOND)
    assert pool.connection(1)["queue"] == [2]
    pool.feed(0, ack(frame), 2 * SECOND)
    assert [r["ident"] for r in pool.take_settled()] == [1]
    pool.expire(12 * SECOND)
    connect_all(pool, 12 * SECOND)
    assert pool.connection(0)["state"] == "idle"


def test_another_id_at_the_same_address_is_another_proxy() -> None:
    pool = Connections(classes=CLASSES)
    pool.endpoints(["a:1"], 1, 0)  # without an id
    connect_all(pool, 0)
    pool.endpoints(["a:1"], 1, SECOND, nodes=[5])  # the id is told later: it may be the same proxy
    assert not pool.connection(0)["retired"]
    pool.endpoints(["a:1"], 1, 2 * SECOND, nodes=[5])
    assert not pool.connection(0)["retired"]
    pool.endpoints(["a:1"], 1, 3 * SECOND, nodes=[6])
    connect_all(pool, 3 * SECOND)
    actives = [i for i in range(pool.facts()["connections"]) if pool.connection(i)["active"]]
    assert actives != [0]


def test_a_proxy_of_two_clusters_has_a_connection_for_each() -> None:
    pool = opened([(1, [("a:1", 0)], 1), (2, [("a:1", 0)], 1)], [1, 2])
    send(pool, [1], 0)
    send(pool, [2], 1)
    assert sorted(pool.connection(i)["queue"] for i in range(2)) == [[1], [2]]


def test_no_cluster_at_all_lets_everything_wait() -> None:
    pool = opened([WEST], [2])
    pool.clusters([], [-1], SECOND)
    connect_all(pool, SECOND)
    send(pool, [1], 0, SECOND)
    assert pool.facts()["waiting"] == 1


def write_queue(pool, at, now) -> None:
    """Have a connection write all frames, more than go into one write."""
    while pool.connection(at)["queue"]:
        write_all(pool, at, now)


def answer_all(pool, group, code, now, takes) -> None:
    """Let a pack of each number go to a group's cluster, and be answered after its time by a code."""
    for ident in range(100, 130):
        frame = pool.submit(ident, ident, [b"x"], LATER, now, group=group)
        at = next(i for i in range(pool.facts()["connections"]) if ident in pool.connection(i)["queue"])
        write_all(pool, at, now)
        now += takes
        pool.feed(at, ack(frame, code), now)
        pool.expire(now)
        pool.take_settled()
        now += SECOND // 10


def test_the_peers_of_a_proxy_are_those_of_its_cluster() -> None:
    pool = opened([(1, [("a:1", 0), ("b:1", 0)], 2), (2, [("c:1", 0), ("d:1", 0)], 2)], [1, 2])
    answer_all(pool, 0, 0, SECOND, 2000)
    answer_all(pool, 1, 0, 2 * SECOND, 400_000)
    answer_all(pool, 0, 0, 20 * SECOND, 2000)
    assert pool.facts()["outs"] == [0, 0, 0, 0, 0], "a cluster that is far away has no outliers for that"


def test_at_most_half_of_each_cluster_is_out() -> None:
    pool = opened([(1, [(f"{name}:1", 0) for name in "abde"], 4), WEST], [1, 2])
    for ident in range(20):
        frame = pool.submit(ident, ident, [b"x"], LATER, SECOND, group=1)
        at = next(i for i in range(5) if pool.connection(i)["peer"] == "c:1")
        write_all(pool, at, SECOND)
        pool.feed(at, ack(frame, NODE), SECOND)
    assert pool.facts()["outs"] == [0, 0, 0, 0, 0], "the only proxy of its cluster stays"
    assert pool.connection(at)["acked_frames"] == 20


def test_a_standby_helps_its_own_cluster_alone() -> None:
    pool = opened([(1, [("a:1", 0), ("b:1", 0), ("e:1", 0)], (2, 2, 1)), WEST], [1, 2])
    every = range(pool.facts()["connections"])
    assert [pool.connection(i)["standby"] for i in every].count(True) == 1
    west = next(i for i in every if pool.connection(i)["peer"] == "c:1")
    pool.lost(west, 3, 104, SECOND)
    assert pool.facts()["swaps"] == [0, 0, 0, 0]
    east = next(i for i in every if pool.connection(i)["active"])
    pool.lost(east, 3, 104, SECOND)
    assert pool.facts()["swaps"] == [0, 1, 0, 0]
    assert sum(pool.connection(i)["active"] for i in every) == 2


def test_a_cluster_uses_up_its_own_retry_budget_alone() -> None:
    pool = Connections(classes=CLASSES, ack_timeout=10 * SECOND, retry_share=0, retry_backoff=1000)
    pool.clusters([EAST, WEST], [1, 2], 0)
    connect_all(pool, 0)

    def refuse(idents, group, now) -> int:
        """Let frames be refused once; return how many are on their way again when their pause is over."""
        frames = {ident: pool.submit(ident, ident, [b"x"], LATER, now, group=group) for ident in idents}
        for i in range(3):
            queued = pool.connection(i)["queue"]
            write_queue(pool, i, now)
            for ident in frames.keys() & set(queued):
                pool.feed(i, ack(frames[ident], NODE), now)
        pool.expire(now + SECOND // 100)
        return len(frames.keys() & {ident for i in range(3) for ident in pool.connection(i)["queue"]})

    assert refuse(range(300), 1, SECOND) == 256
    assert refuse(range(300, 320), 0, 2 * SECOND) == 20


def test_what_a_cluster_has_used_up_stays_used_up_when_the_list_changes() -> None:
    pool = Connections(classes=CLASSES, ack_timeout=10 * SECOND, retry_share=0, retry_backoff=1000)
    pool.clusters([WEST], [2], 0)
    connect_all(pool, 0)
    for begin, most in ((0, 256), (300, 0)):
        frames = {i: pool.submit(i, i, [b"x"], LATER, SECOND, group=0) for i in range(begin, begin + 256)}
        write_queue(pool, 0, SECOND)
        for frame in frames.values():
            pool.feed(0, ack(frame, NODE), SECOND)
        before = pool.facts()["held"]
        pool.expire(SECOND + SECOND // 100)
        assert pool.facts()["held"] - before >= 256 - most
        pool.clusters([EAST, WEST], [2, 1], SECOND + SECOND // 100)
        connect_all(pool, SECOND + SECOND // 100)
