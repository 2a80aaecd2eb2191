"""A consumer reads: packs, records, confirms and rollbacks, in the usual course of things."""

from __future__ import annotations

import threading

import pytest

from tests.support.consumers import COMMIT, GET, Opener, balanced, drain, next_pack
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

INDEX = 28


def test_a_pack_is_read_and_confirmed(tube: TubeServer, opened: Opener) -> None:
    for i in range(3):
        tube.put("one", b"%d" % i, attribute=f"$msgType$=t{i},k=v{i}")
    consumer = opened()
    consumer.wait_ready()
    pack = next_pack(consumer)
    assert (len(pack), pack.bodies(), pack.topic, pack.partition) == (3, [b"0", b"1", b"2"], "one", "1:one:0")
    assert [one.body for one in pack] == pack.bodies() == [one.body for one in pack[:]]
    assert [one.index for one in pack[::-1]] == [2, 1, 0]
    assert pack[-1].attributes == {"$msgType$": "t2", "k": "v2"}
    assert (pack[0].topic, pack[0].partition, len({one.id for one in pack})) == ("one", "1:one:0", 3)
    assert (pack.offset, pack.max_offset, pack.outcome, pack.code) == (0, 3 * INDEX, "held", 0)
    assert tube.confirmed("g", "one", 0) == 0
    pack.confirm()
    assert (pack.outcome, tube.confirmed("g", "one", 0)) == ("confirmed", 3 * INDEX)
    assert consumer.poll(0) is None
    assert consumer.poll(0.03) is None
    stats = consumer.stats()
    assert (stats.packs.confirmed, stats.messages.confirmed, stats.messages.held) == (1, 3, 0)
    assert (stats.state, stats.client, stats.trouble) == ("member", consumer.client, "")


def test_the_next_pack_is_asked_for_together_with_the_confirm(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(20):
        tube.put("one", b"%d" % i)
    consumer = opened()
    assert drain(consumer, 20) == [b"%d" % i for i in range(20)]
    calls = [call.method for call in tube.calls if call.method in (GET, COMMIT)]
    first = calls.index(COMMIT)
    assert calls[first : first + 38] == [COMMIT, GET] * 19


def test_a_pack_that_is_rolled_back_comes_again(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    consumer = opened()
    for _ in range(3):
        pack = next_pack(consumer)
        assert pack.bodies() == [b"a"]
        pack.rollback()
        assert eventually(lambda pack=pack: pack.outcome == "rolled_back")
    next_pack(consumer).confirm()
    packs = consumer.stats().packs
    assert (packs.fetched, packs.rolled_back, packs.confirmed) == (4, 3, 1)


def test_iteration_ends_with_the_consumer(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(5):
        tube.put("one", b"%d" % i)
    consumer = opened()
    bodies = []
    for pack in consumer:
        bodies += pack.bodies()
        pack.confirm()
        if len(bodies) == 5:
            consumer.close()
    assert bodies == [b"%d" % i for i in range(5)]
    assert list(consumer) == []


def test_records_confirm_a_pack_behind_its_last_message(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 106  # two messages
    for i in range(4):
        tube.put("one", b"%d" % i)
    consumer = opened()
    records = consumer.records()
    assert [next(records).body for _ in range(2)] == [b"0", b"1"]
    assert consumer.stats().packs.confirmed == 0
    assert next(records).body == b"2"
    assert eventually(lambda: consumer.stats().packs.confirmed == 1)
    assert tube.confirmed("g", "one", 0) == 2 * INDEX
    assert next(records).body == b"3"
    records.close()
    consumer.close()
    assert tube.confirmed("g", "one", 0) == 2 * INDEX


def test_auto_confirm_confirms_the_pack_before(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(3):
        tube.put("one", b"%d" % i)
    consumer = opened(auto_confirm=True)
    first = next_pack(consumer)
    assert first.outcome == "held"
    second = next_pack(consumer)
    assert (first.outcome, second.outcome) == ("confirmed", "held")
    second.confirm()
    third = next_pack(consumer)
    assert consumer.poll(0) is None
    assert eventually(lambda: third.outcome == "confirmed")
    assert consumer.stats().packs.confirmed == 3


def test_auto_confirm_spares_packs_of_a_thread_that_ended(tube: TubeServer, opened: Opener) -> None:
    """The next thread may have its number."""
    tube.settings.pack_bytes = 1
    for i in range(2):
        tube.put("three", b"%d" % i, partition=i)
    consumer = opened("three", auto_confirm=True)
    packs = []

    def work() -> None:
        packs.append(next_pack(consumer))

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [pack.outcome for pack in packs] == ["held", "held"]
    consumer.close()
    assert [tube.confirmed("g", "three", i) for i in range(2)] == [0, 0]


def test_several_topics(tube: TubeServer, opened: Opener) -> None:
    for i in range(30):
        tube.put("group", b"g%d" % i, partition=i % 6)
        tube.put("three", b"t%d" % i, partition=i % 3)
        tube.put("one", b"o%d" % i)
    consumer = opened(["one", "three", "group"])
    found = {}
    while sum(map(len, found.values())) < 90:
        pack = next_pack(consumer)
        assert {one.topic for one in pack} == {pack.topic}
        found.setdefault(pack.topic, []).extend(pack.bodies())
        pack.confirm(wait=False)
    assert {topic: sorted(bodies) for topic, bodies in found.items()} == {
        topic: sorted(topic[0].encode() + b"%d" % i for i in range(30)) for topic in ("one", "three", "group")
    }
    assert len(consumer.assignment()) == 10


def test_big_messages(tube: TubeServer, opened: Opener) -> None:
    bodies = [bytes([i]) * (1 << 20) for i in range(4)]
    for body in bodies:
        tube.put("one", body, attribute="k=v")
    consumer = opened(prefetch_bytes="64KiB")
    for body in bodies:
        pack = next_pack(consumer)
        assert pack.bodies() == [body]
        assert pack.nbytes > len(body)
        pack.confirm()
    assert consumer.stats().bytes > sum(map(len, bodies))


def test_empty_and_odd_messages(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"")
    tube.put("one", b"", attribute="alone")
    tube.put("one", b"\x00\xff", attribute="a=1,a=2,=3,b==,c=,ä=ö")
    consumer = opened()
    records = list(next_pack(consumer))
    assert [one.body for one in records] == [b"", b"", b"\x00\xff"]
    assert [one.attributes for one in records] == [{}, {}, {"a": "1", "b": "=", "c": "", "ä": "ö"}]
    assert "2 bytes" in repr(records[2])


def test_counts_balance_at_every_moment(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    n = 120
    for i in range(n):
        tube.put("group", b"%d" % i, partition=i % 6)
    consumer = opened("group")
    seen: set[bytes] = set()

    def work(rolls_back: bool) -> None:
        while len(seen) < n:
            pack = consumer.poll(0.05)
            if pack is None:
                continue
            if rolls_back and hash(pack.bodies()[0]) % 3 == 0:
                pack.rollback()
            else:
                seen.update(pack.bodies())
                pack.confirm(wait=False)

    threads = [threading.Thread(target=work, args=(i == 0,)) for i in range(3)]
    for thread in threads:
        thread.start()
    looks = 0
    while any(thread.is_alive() for thread in threads):
        stats = consumer.stats()
        assert balanced(stats.packs), stats
        assert balanced(stats.messages), stats
        looks += 1
        threads[0].join(0.0005)
    assert looks > 0
    consumer.close()
    stats = consumer.stats()
    assert balanced(stats.packs)
    assert stats.packs.held == 0
    assert stats.packs.confirmed >= n


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_small_room_is_shared_by_all_partitions(tube: TubeServer, opened: Opener, partitions: int) -> None:
    """A partition whose pack is confirmed does not take the next turn as well."""
    tube.settings.pack_bytes = 1
    topic = {1: "one", 3: "three"}[partitions]
    for i in range(8 * partitions):
        tube.put(topic, b"%d" % i, partition=i % partitions)
    consumer = opened(topic, prefetch_bytes="64KiB")
    assert eventually(lambda: len(consumer.assignment()) == partitions)  # before that, one may have the room for itself
    order = []
    for _ in range(4 * partitions):
        pack = next_pack(consumer)
        order.append(pack.partition)
        pack.confirm()
    assert min(order.count(key) for key in consumer.assignment()) >= 3, order
