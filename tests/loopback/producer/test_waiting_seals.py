"""A message that somebody waits for is sent at once; with a linger of a minute a test would not end otherwise."""

import pytest

import dataproxy
from tests.support.scripted import Scripted, ack


def producer(target: str, **options: object) -> dataproxy.Producer:
    """Return a producer that seals packs only when it must."""
    return dataproxy.Producer(target, group_id="g", linger=60, **options)


@pytest.mark.parametrize("attrs", [None, {"k": "v"}])
def test_waiting_for_a_result_sends_its_pack(attrs) -> None:
    with Scripted() as server, producer(server.target) as p:
        other = p.send("other", b"o")
        same = p.send("s", b"a", attrs=attrs)
        assert p.send("s", b"b", attrs=attrs).result(20).position == 1
        assert same.done()
        assert not other.done()
        assert p.send("s", b"c").exception(20) is None
        assert p.send_batch("s", [b"d"] * 3).result(20).ok
        assert p.stats().open == 1


def test_a_look_sends_nothing() -> None:
    with Scripted() as server, producer(server.target) as p:
        sent = p.send("s", b"a")
        batch = p.send_batch("s", [b"b"])
        for look in (lambda: sent.result(0), lambda: sent.exception(0), lambda: batch.result(0)):
            with pytest.raises(dataproxy.DeliveryPending):
                look()
        assert not sent.done()
        assert (p.stats().open, server.frames) == (2, [])


def test_a_result_that_is_there_seals_nothing() -> None:
    with Scripted() as server, producer(server.target) as p:
        first = p.send("s", b"a")
        first.result(20)
        p.send("s", b"b")
        first.result(20)
        assert p.stats().open == 1


def test_behind_a_busy_key_the_pack_goes_on_growing() -> None:
    held = []

    def react(peer, frame) -> None:
        held.append((peer, frame))
        if len(held) > 1:
            peer.send(ack(frame))

    with Scripted(react) as server, producer(server.target, ordering="key") as p:
        first = p.send("s", b"a", key="k")
        with pytest.raises(dataproxy.DeliveryPending):
            first.result(0.001)  # on its way now, and not answered
        server.wait_frames(1)
        second = p.send("s", b"b", key="k")
        with pytest.raises(dataproxy.DeliveryPending):
            second.result(0.001)
        third = p.send("s", b"c", key="k")
        assert (p.stats().open, p.stats().in_flight) == (2, 1)
        held[0][0].send(ack(held[0][1]))
        assert [d.result(20).position for d in (first, second, third)] == [0, 0, 1]
