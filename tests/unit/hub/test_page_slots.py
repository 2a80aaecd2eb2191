"""Slots for pages of records: who does not read his page pays, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass

from dataproxy.hub.web.pages.slots import PageSlots


@dataclass(eq=False)
class Peer:
    address: str = "1.1.1.1"
    stalled_since: float | None = None
    reads: bool = False
    dropped: bool = False

    def drop(self) -> None:
        self.dropped = True


def test_slots_are_counted():
    slots, peers = PageSlots(2, 2.0), [Peer(), Peer(), Peer()]
    assert [slots.take(peer, 1.0) for peer in peers] == [True, True, False]
    slots.give_back(peers[0])
    assert len(slots) == 1
    assert slots.take(peers[2], 1.0)


def test_who_reads_is_never_dropped():
    slots, crowd = PageSlots(3, 2.0), [Peer("2.2.2.2") for _ in range(3)]
    assert all(slots.take(peer, 1.0) for peer in crowd)
    assert not slots.take(Peer(), 1000.0), "however long it takes"
    assert not any(peer.dropped for peer in crowd)


def test_the_address_with_most_pays_at_once_with_what_stands_still_longest():
    slots, crowd = (
        PageSlots(4, 2.0),
        [Peer("2.2.2.2", 9.9), Peer("2.2.2.2", 9.8), Peer("2.2.2.2"), Peer("3.3.3.3", 1.0)],
    )
    assert all(slots.take(peer, 9.0) for peer in crowd)
    new = Peer()
    assert slots.take(new, 10.0)
    assert [peer.dropped for peer in crowd] == [False, True, False, False]
    slots.give_back(crowd[1])
    assert len(slots) == 4, "it had paid with its slot"
    assert not slots.take(Peer("2.2.2.2"), 10.0), "it has as many itself"


def test_after_a_while_it_pays_for_its_own_address_too():
    slots, first = PageSlots(2, 2.0), Peer(stalled_since=5.0)
    assert slots.take(first, 5.0)
    assert slots.take(Peer(), 5.0)
    assert not slots.take(Peer(), 6.9)
    assert slots.take(Peer(), 7.0)
    assert first.dropped


def test_who_reads_his_pages_waits_for_a_tenth_of_it():
    slots, first = PageSlots(2, 2.0), Peer(stalled_since=5.0)
    assert slots.take(first, 5.0)
    assert slots.take(Peer(), 5.0)
    assert not slots.take(Peer(reads=True), 5.1)
    assert not slots.take(Peer(), 5.3)
    assert slots.take(Peer(reads=True), 5.3)
    assert first.dropped
