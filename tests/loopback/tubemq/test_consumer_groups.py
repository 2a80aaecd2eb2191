"""Consumers of one group: they share partitions, and take over from those that leave, die or lose their servers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from dataproxy.consumer.consumer import Consumer
from dataproxy.errors import ConfirmError, DataProxyError
from tests.support.consumers import Opener, balanced, drain, next_pack
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

SIX = [f"1:group:{i}" for i in range(6)]


@pytest.fixture
def tube() -> Iterator[TubeServer]:
    """Return a server that misses silent members soon."""
    with TubeServer(topics={"one": 1, "group": 6}, balance_s=0.02, member_limit_s=1.0, lock_limit_s=1.0) as server:
        yield server


def shared(*consumers: Consumer) -> bool:
    """Tell whether all partitions are read, and as evenly as they can be."""
    held = [one.assignment() for one in consumers]
    counts = sorted(map(len, held))
    return sorted(itertools.chain(*held)) == SIX and counts[-1] - counts[0] <= 1


def send(tube: TubeServer, name: str, n: int = 60) -> set[bytes]:
    """Send messages to all partitions."""
    bodies = [f"{name}-{i}".encode() for i in range(n)]
    for i, body in enumerate(bodies):
        tube.put("group", body, partition=i % 6)
    return set(bodies)


def read(consumers: list[Consumer], wanted: set[bytes]) -> list[bytes]:
    """Read in turn until all messages came; return all that came."""
    bodies: list[bytes] = []

    def turn() -> bool:
        for one in consumers:
            pack = one.poll(0.0)
            if pack is not None:
                bodies.extend(pack.bodies())
                pack.confirm(wait=False)
        return wanted <= set(bodies)

    assert eventually(turn), (wanted - set(bodies), [one.stats() for one in consumers])
    return bodies


def die(consumer: Consumer) -> None:
    """Let a consumer's threads end without a word to its servers."""
    consumer._driver.abandon()
    assert eventually(lambda: not any(thread.is_alive() for thread in consumer._threads))


@pytest.mark.parametrize("n", [2, 3])
def test_members_share_what_is_sent(tube: TubeServer, opened: Opener, n: int) -> None:
    members = [opened("group") for _ in range(n)]
    assert eventually(lambda: shared(*members))
    wanted = send(tube, "a")
    assert sorted(read(members, wanted)) == sorted(wanted)
    assert {tube.owner("g", "group", i) for i in range(6)} == {one.client for one in members}
    assert all(balanced(one.stats().packs) for one in members)


def test_more_members_than_partitions(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    members = [opened("one") for _ in range(3)]
    for one in members:
        one.wait_ready()
    assert eventually(lambda: sum(len(one.assignment()) for one in members) == 1)
    packs = [pack for pack in (one.poll(0.1) for one in members) if pack is not None]
    assert [pack.bodies() for pack in packs] == [[b"a"]]


def test_a_member_leaves_and_another_one_comes(tube: TubeServer, opened: Opener) -> None:
    first, second = opened("group"), opened("group")
    assert eventually(lambda: shared(first, second))
    first.close()
    assert eventually(lambda: shared(second))
    third = opened("group")
    assert eventually(lambda: shared(second, third))
    wanted = send(tube, "a")
    assert sorted(read([second, third], wanted)) == sorted(wanted)
    assert sorted(tube.members("g")) == sorted([second.client, third.client])


def test_a_member_dies(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    first, second = opened("group"), opened("group")
    assert eventually(lambda: shared(first, second))
    wanted = send(tube, "a", 24)
    pack = next_pack(first)
    die(first)
    assert pack.outcome == "expired"
    read([second], wanted)
    assert eventually(lambda: shared(second))
    assert tube.members("g") == [second.client]


# --- revocations


class Told:
    """What the callbacks of a consumer were told."""

    def __init__(self) -> None:
        self.assigned: list[str] = []
        self.revoked: list[tuple[str, bool]] = []

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {
            "on_assigned": self.assigned.append,
            "on_revoked": lambda key, lost: self.revoked.append((key, lost)),
        }


def test_callbacks_tell_what_comes_and_goes(tube: TubeServer, opened: Opener) -> None:
    told = Told()
    first = opened("group", **told.callbacks())
    assert eventually(lambda: sorted(told.assigned) == SIX)
    second = opened("group")
    assert eventually(lambda: shared(first, second) and len(told.revoked) == 3)
    assert [lost for _, lost in told.revoked] == [False] * 3
    assert {key for key, _ in told.revoked} == set(second.assignment())
    first.close()
    assert eventually(lambda: sorted(key for key, _ in told.revoked) == SIX)
    assert not any(lost for _, lost in told.revoked)


def test_a_lost_partition_is_told_as_lost(tube: TubeServer, opened: Opener) -> None:
    told = Told()
    consumer = opened("group", **told.callbacks())
    assert eventually(lambda: len(told.assigned) == 6)
    tube.stop_broker()
    tube.start_broker()
    assert eventually(lambda: len(told.assigned) == 12 and len(told.revoked) == 6)
    assert told.revoked == [(key, True) for key, _ in told.revoked]
    assert shared(consumer)


def test_callbacks_that_raise_or_use_the_consumer(tube: TubeServer, opened: Opener) -> None:
    found: list[object] = []
    ready = threading.Event()

    def assigned(key: str) -> None:
        ready.wait(30)
        found.append((key in consumer.assignment(), consumer.stats().state))
        consumer.pause(key)
        consumer.resume(key)
        if len(found) == 6:
            consumer.close()
            found.append("closed")
        raise SystemExit(key) if len(found) % 2 else ValueError(key)

    consumer = opened("group", on_assigned=assigned)
    assert eventually(lambda: len(consumer.assignment()) == 6)
    ready.set()
    assert eventually(lambda: found[-1:] == ["closed"])
    assert found == [(True, "member")] * 6 + ["closed"]


def outs(consumer: Consumer) -> dict[str, object]:
    """Take a pack of each partition."""
    packs = {}
    while len(packs) < 6:
        pack = next_pack(consumer)
        packs[pack.partition] = pack
    return packs


def test_packs_of_a_revoked_partition_are_confirmed_in_time(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    wanted = send(tube, "a", 12)
    told = Told()
    first = opened("group", release_wait=30, **told.callbacks())
    packs = outs(first)
    second = opened("group")
    assert eventually(lambda: len(told.revoked) == 3)
    assert second.poll(0.05) is None  # it waits for the old owner
    for key, _ in told.revoked:
        packs[key].confirm()
    assert eventually(lambda: len(second.assignment()) == 3)
    rest = wanted - {body for pack in packs.values() for body in pack.bodies()}
    mine = {b"a-%d" % (6 + SIX.index(key)) for key in second.assignment()}
    assert set(drain(second, 3)) == mine
    for key in first.assignment():
        packs[key].confirm()
    assert set(drain(first, 3)) == rest - mine


def test_packs_of_a_revoked_partition_go_to_the_next_owner(tube: TubeServer, opened: Opener) -> None:
    wanted = send(tube, "a", 6)
    told = Told()
    first = opened("group", release_wait=0.05, **told.callbacks())
    packs = outs(first)
    second = opened("group")
    assert eventually(lambda: shared(first, second))
    revoked = [packs[key] for key, _ in told.revoked]
    assert eventually(lambda: {pack.outcome for pack in revoked} == {"expired"})
    for pack in revoked:
        with pytest.raises(ConfirmError) as caught:
            pack.confirm()
        assert caught.value.code == "CONFIRM_REVOKED"
    for key in first.assignment():
        packs[key].confirm()
    again = {body for pack in revoked for body in pack.bodies()}
    assert set(drain(second, 3)) == again < wanted
    stats = first.stats().packs
    assert (stats.confirmed, stats.expired, stats.held) == (3, 3, 0)


# --- servers that stop


def end_broker(tube: TubeServer) -> None:
    tube.stop_broker()
    tube.start_broker()


def end_master(tube: TubeServer) -> None:
    tube.stop_master()
    tube.start_master()


def forget_members(tube: TubeServer) -> None:
    tube.on("HeartRequestC2M", "close", times=2, worked=True)
    tube.on("HeartRequestC2M", ("code", 411, "unknown"))


def lose_brokers_heartbeats(tube: TubeServer) -> None:
    tube.on("HeartBeatRequestC2B", "close", times=2)
    tube.on("HeartBeatRequestC2B", ("code", 415, "who"), times=1)


@pytest.mark.parametrize("end", [end_broker, end_master, forget_members, lose_brokers_heartbeats, TubeServer.cut])
def test_a_group_goes_on_after_a_fault(tube: TubeServer, opened: Opener, end: Callable[[TubeServer], None]) -> None:
    first, second = opened("group"), opened("group")
    assert eventually(lambda: shared(first, second))
    read([first, second], send(tube, "before"))
    wanted = send(tube, "meanwhile")
    end(tube)
    wanted |= send(tube, "after")
    read([first, second], wanted)
    assert eventually(lambda: shared(first, second))
    assert all(balanced(one.stats().packs) for one in (first, second))
    assert all(one.stats().state == "member" for one in (first, second))


def test_packs_are_read_while_no_master_runs(tube: TubeServer, opened: Opener) -> None:
    consumer = opened("group")
    assert eventually(lambda: shared(consumer))
    tube.stop_master()
    assert eventually(lambda: consumer.stats().trouble)
    read([consumer], send(tube, "alone"))
    tube.start_master()
    read([consumer], send(tube, "again"))
    assert eventually(lambda: tube.members("g") == [consumer.client])


def test_a_consumer_that_is_opened_before_its_servers_run(tube: TubeServer, opened: Opener) -> None:
    tube.stop_master()
    tube.stop_broker()
    consumer = opened("group")
    with pytest.raises(DataProxyError) as caught:
        consumer.wait_ready(0.05)
    assert caught.value.code == "NO_MASTER"
    assert eventually(lambda: "refused" in consumer.stats().trouble)
    assert consumer.poll(0.05) is None
    tube.start_master()
    consumer.wait_ready()
    tube.start_broker()
    read([consumer], send(tube, "a"))
