"""A pack refused for one message's fault, over real sockets: what callers, accounting and the proxy see of it."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

import dataproxy
from dataproxy._core.wire.inlong.message import records
from tests.loopback.test_producer_faults import producer
from tests.native.probe_wire import Server
from tests.support.scripted import Peer, Scripted, ack, refusal, silent

CODE = 123
WHY = "no bad ones here"


def bodies(frame: bytes) -> list[bytes]:
    """Return the bodies of one frame."""
    return [body for body, _ in records(Server().serve(frame, 0)["entry"])]


def refuses(frame: bytes) -> bool:
    """Tell whether a body of the frame is bad."""
    return any(b"bad" in body for body in bodies(frame))


def picky(peer: Peer, frame: bytes) -> None:
    """Answer as a proxy that takes no frame with a bad body."""
    peer.send(refusal(frame, CODE, WHY.encode()) if refuses(frame) else ack(frame))


@contextmanager
def together(target: str, **options: object) -> Iterator[dataproxy.Producer]:
    """Open a producer that seals when it is told to; at the end some messages may be undelivered."""
    with closing(producer(target, **{"linger": 20.0, "delivery_timeout": 60.0, **options})) as p:
        yield p


def messages(n: int, bad: set[int]) -> list[bytes]:
    """Return bodies that say their number."""
    return [b"bad %d" % i if i in bad else b"good %d" % i for i in range(n)]


def outcome(delivery: dataproxy.Delivery) -> str:
    """Return what became of one message."""
    error = delivery.exception(20)
    if error is None:
        assert delivery.result(0).id == delivery.id
        return "delivered"
    with pytest.raises(type(error)) as raised:
        delivery.result(0)
    assert raised.value.details == error.details
    assert error.details["id"] == delivery.id
    return {dataproxy.DeliveryFailed: "failed", dataproxy.DeliveryExpired: "expired"}[type(error)]


def kept(server: Scripted) -> dict[str, bytes]:
    """Return the bodies that a picky proxy took, by the names that a reader knows them by; each came once."""
    found: dict[str, bytes] = {}
    for _, frame in list(server.frames):
        if not refuses(frame):
            for at, (body, attrs) in enumerate(records(Server().serve(frame, 0)["entry"])):
                name = attrs.get("msgid") or f"{attrs['sid']}.{at}"
                assert name not in found
                found[name] = body
    return found


@pytest.mark.parametrize(("message_type", "compression"), list(itertools.product((7, 5), ("none", "snappy"))))
def test_every_caller_hears_of_its_own_message(message_type: int, compression: str) -> None:
    told: list[dataproxy.DeliveryResult] = []
    called: list[dataproxy.DeliveryResult] = []
    done: list[dataproxy.Delivery] = []
    with (
        Scripted(picky) as server,
        together(server.target, message_type=message_type, compression=compression, compression_min_bytes=1,
                         on_delivery=told.append) as p,
    ):  # fmt: skip
        single = [p.send("s", body, on_delivery=called.append) for body in messages(5, {1, 4})]
        for delivery in single:
            delivery.add_done_callback(done.append)
        batch = p.send_batch("s", messages(6, {0, 3}), on_delivery=called.append)
        report = p.flush()
        assert [outcome(d) for d in single] == ["delivered", "failed", "delivered", "delivered", "failed"]
        result = batch.result(20)
        assert (result.accepted, result.delivered) == (6, 4)
        assert [(f.first, f.messages, f.error.code) for f in result.failures] == [(0, 1, CODE), (3, 1, CODE)]
        ids = [d.id for d in single] + batch.ids()
        everything = messages(5, {1, 4}) + messages(6, {0, 3})
        good = {name: body for name, body in zip(ids, everything, strict=True) if body.startswith(b"good")}
        assert kept(server) == good
        assert (report.delivered, report.failed, report.expired, report.errors) == (7, 4, 0, {CODE: 4})
        assert report.balanced
        framing = 4
        assert report.delivered_bytes == sum(len(body) + framing for body in good.values())
        stats = p.stats()
        assert stats.buffered_bytes == stats.in_flight == 0
        assert stats.latency.count == 7
        back = list(p.undelivered())
        assert [(m.id, m.body) for m in back] == [(i, b) for i, b in zip(ids, everything, strict=True) if i not in good]
        assert all(m.error.details["last_reason"] == WHY and not m.attrs for m in back)
        assert not p.close().ok
    for results in (told, called):
        assert [r.delivered.id if r.delivered else r.error.details["id"] for r in results] == ids
        assert [r.error is None for r in results] == [name in good for name in ids]
    assert [d.id for d in done] == [d.id for d in single]


def test_lines_cannot_be_divided() -> None:
    with Scripted(picky) as server, together(server.target, message_type=3) as p:
        deliveries = [p.send("s", body) for body in messages(3, {1})]
        assert p.flush().failed == 3
        assert [outcome(d) for d in deliveries] == ["failed"] * 3
        assert len(server.frames) == 1


def test_what_callers_gave_stays_with_their_messages() -> None:
    with Scripted(picky) as server, together(server.target) as p:
        extra: list[dict[str, Any]] = [
            {"attrs": {"a": "1"}}, {"attrs": {"a": "1"}, "message_id": "mine"}, {"message_id": "yours"},
            {"attrs": {"b": "2"}},
        ]  # fmt: skip
        deliveries = [p.send("s", b"good %d" % i, **more) for i, more in enumerate(extra)]
        bad = p.send("s", b"bad", attrs={"c": "3"}, message_id="guilty")
        p.flush()
        assert [outcome(d) for d in [*deliveries, bad]] == ["delivered"] * 4 + ["failed"]
        stored = {
            body: (attrs["msgid"], attrs.get("a"), attrs.get("b"))
            for _, frame in server.frames if not refuses(frame)
            for body, attrs in records(Server().serve(frame, 0)["entry"])
        }  # fmt: skip
        assert stored == {
            b"good 0": (deliveries[0].id, "1", None), b"good 1": ("mine", "1", None),
            b"good 2": ("yours", None, None), b"good 3": (deliveries[3].id, None, "2"),
        }  # fmt: skip
        (back,) = p.undelivered()
        assert (back.id, back.body, dict(back.attrs)) == ("guilty", b"bad", {"c": "3"})


def test_a_batch_with_ids_of_its_own() -> None:
    told: list[dataproxy.DeliveryResult] = []
    with Scripted(picky) as server, together(server.target, on_delivery=told.append) as p:
        names = [f"row-{i}" for i in range(9)]
        batch = p.send_batch("s", messages(9, {2, 3, 8}), message_ids=names)
        p.flush()
        failures = [(f.first, f.messages, f.error.details["id"]) for f in batch.result(20).failures]
        assert failures in ([(2, 2, "row-2"), (8, 1, "row-8")], [(2, 1, "row-2"), (3, 1, "row-3"), (8, 1, "row-8")])
        assert set(kept(server)) == set(names) - {"row-2", "row-3", "row-8"}
        assert [m.id for m in p.undelivered()] == ["row-2", "row-3", "row-8"]
        assert p.report().failed == 3
    assert [r.delivered.id if r.delivered else r.error.details["id"] for r in told] == names


def test_order_by_key_holds_through_a_split() -> None:
    with Scripted(picky) as server, together(server.target, ordering="key", key_buckets=1, connections=3) as p:
        deliveries = [p.send("s", body, key="k") for body in messages(8, {2, 5})]
        p.flush()
        deliveries += [p.send("s", b"good %d" % i, key="k") for i in range(8, 12)]
        p.flush()
        assert [outcome(d) for d in deliveries].count("failed") == 2
        assert list(kept(server).values()) == [b"good %d" % i for i in range(12) if i not in (2, 5)]


@pytest.mark.parametrize("how", ["later", "reset", "silent"])
def test_whatever_happens_to_one_of_its_frames(how: str) -> None:
    for at in range(1, 6):
        numbers = itertools.count()

        def react(peer: Peer, frame: bytes, at: int = at, numbers: Any = numbers) -> None:
            if next(numbers) != at:
                picky(peer, frame)
            elif how == "later":
                peer.send(refusal(frame, 114))
            elif how == "reset":
                peer.reset()

        with Scripted(react) as server, together(server.target, ack_timeout=0.2, connections=2) as p:
            deliveries = [p.send("s", body) for body in messages(4, {1, 3})]
            p.flush(30)
            assert [outcome(d) for d in deliveries] == ["delivered", "failed"] * 2
            assert p.report().balanced
            assert [b for b in dict.fromkeys(server.bodies()) if b"good" in b] == [b"good 0", b"good 2"]


def test_it_expires_in_the_middle() -> None:
    def react(peer: Peer, frame: bytes) -> None:
        if b"good 3" not in bodies(frame) or refuses(frame):
            picky(peer, frame)

    with Scripted(react) as server, together(server.target, delivery_timeout=2.0, linger=0.3) as p:
        deliveries = [p.send("s", body) for body in messages(4, {0})]
        p.flush(20)
        assert [outcome(d) for d in deliveries] == ["failed", "delivered", "expired", "expired"]
        assert [d.exception(0).details["maybe_delivered"] for d in deliveries[2:]] == [True, True]
        report = p.report()
        assert (report.delivered, report.failed, report.expired, report.pending) == (1, 1, 2, 0)
        assert report.maybe_delivered == 2
        assert [m.body for m in p.undelivered()] == [b"bad 0", b"good 2", b"good 3"]
        assert len(server.frames) >= 5


def test_it_is_closed_in_the_middle() -> None:
    reached = threading.Event()

    def react(peer: Peer, frame: bytes) -> None:
        if refuses(frame) or b"good 1" in bodies(frame):
            picky(peer, frame)
        else:
            reached.set()

    with Scripted(react) as server:
        p = producer(server.target, linger=20.0, delivery_timeout=60.0)
        deliveries = [p.send("s", body) for body in messages(4, {0})]
        batch = p.send_batch("s", [b"good 4"])
        with pytest.raises(dataproxy.FlushTimeout):
            p.flush(0.0)
        assert reached.wait(20)
        report = p.close(0.0)
        assert [outcome(d) for d in deliveries] == ["failed", "delivered", "failed", "failed"]
        assert [d.exception(0).code if d.exception(0) else None for d in deliveries] == [CODE, None, "CLOSED", "CLOSED"]
        assert batch.result(0).delivered == 0
        assert (report.delivered, report.failed) == (1, 4)
        assert report.balanced


def test_tasks_are_told_of_their_own_messages() -> None:
    async def work(target: str) -> tuple[list[object], Any]:
        p = dataproxy.AsyncProducer(target, group_id="g", linger=20.0)
        results = await asyncio.gather(*(p.send("s", body) for body in messages(9, {3, 4})), return_exceptions=True)
        batch = await p.send_batch("s", messages(3, {1}))
        assert (await p.close()).failed == 3
        return results, batch

    with Scripted(picky) as server:
        results, batch = asyncio.run(work(server.target))
        codes = [r.code if isinstance(r, dataproxy.DeliveryError) else 0 for r in results]
        assert codes == [0, 0, 0, CODE, CODE, 0, 0, 0, 0]
        assert {r.id for r in results if isinstance(r, dataproxy.Delivered)} <= set(kept(server))
        assert (batch.accepted, batch.delivered, batch.failures[0].first) == (3, 2, 1)


def test_late_callbacks_of_a_split_pack() -> None:
    with Scripted(picky) as server:
        p = producer(server.target, linger=20.0)
        deliveries = [p.send("s", body) for body in messages(4, {2})]
        p.flush()
        called: list[dataproxy.Delivery] = []
        deliveries[2].add_done_callback(called.append)
        assert called == [deliveries[2]]
        assert not p.close().ok
        assert [outcome(d) for d in deliveries] == ["delivered", "delivered", "failed", "delivered"]


def test_nothing_stays_behind_when_what_is_not_kept_is_counted() -> None:
    with Scripted(picky) as server, together(server.target, undelivered_bytes=0) as p:
        p.send_batch("s", messages(8, {1, 6}))
        report = p.flush()
        assert (report.failed, report.not_kept) == (2, 2)
        assert list(p.undelivered()) == []


def test_a_reader_behind_a_window_of_ids_sees_each_message_once() -> None:
    """A part that was stored, not answered, and sent again is known by the ids of its messages."""
    first = threading.Event()

    def react(peer: Peer, frame: bytes) -> None:
        if not refuses(frame) and not first.is_set():
            first.set()
            silent(peer, frame)
            peer.close()
            return
        picky(peer, frame)

    with Scripted(react) as server, together(server.target) as p:
        deliveries = [p.send("s", body) for body in messages(6, {4})]
        p.flush()
        assert [outcome(d) for d in deliveries] == ["delivered"] * 4 + ["failed", "delivered"]
        names = [
            attrs["msgid"] for _, frame in server.frames if not refuses(frame)
            for _, attrs in records(Server().serve(frame, 0)["entry"])
        ]  # fmt: skip
        assert len(names) > len(set(names)) == 5
        assert set(names) == {d.id for i, d in enumerate(deliveries) if i != 4}


def test_many_packs_at_once() -> None:
    expected = {i for i in range(2000) if i % 37 == 0}
    with (
        Scripted(picky) as server,
        together(server.target, batch_messages=50, linger=0.001, connections=3, executors=2) as p,
    ):
        deliveries = [p.send("s", b"bad" if i in expected else b"good") for i in range(2000)]
        report = p.flush(60)
        assert [outcome(d) == "failed" for d in deliveries] == [i in expected for i in range(2000)]
        assert (report.failed, report.delivered) == (55, 1945)
        assert len(kept(server)) == 1945
