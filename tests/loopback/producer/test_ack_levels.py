"""What each level of ``ack`` asks for, and what its callers are told, against hubs and against a silent server."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

import dataproxy
from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.outcomes import DeliveryResult
from tests.loopback.hub.peer import wait_until
from tests.loopback.test_producer_faults import producer
from tests.support.scripted import Peer, Scripted, good, silent

_TYPES = (7, 5, 3)


@pytest.mark.parametrize("message_type", _TYPES)
def test_without_an_ack_everything_is_sent_and_told_so(message_type: int) -> None:
    told: list[DeliveryResult] = []
    with Hub() as hub:
        with producer(hub.target, ack="none", message_type=message_type, on_delivery=told.append) as p:
            one = p.send("s", b"one")
            result = one.result(20)
            assert isinstance(result, dataproxy.Sent)
            assert (result.node, result.attempts, result.id) == (hub.target.removeprefix("tcp://"), 1, one.id)
            assert one.exception(20) is None
            batch = p.send_batch("s", [b"two", b"three"]).result(20)
            assert (batch.sent, batch.delivered, batch.ok) == (2, 0, True)
            p.send_nowait("s", b"four")
            report = p.flush(20.0)
            stats = p.stats()
        assert (report.sent, report.delivered, report.accepted, report.ok, report.balanced) == (4, 0, 4, True, True)
        assert (stats.sent, stats.balanced, stats.latency.count, stats.unmatched_replies) == (4, True, 4, 0)
        assert not list(p.undelivered())
        assert [(t.delivered, t.error) for t in told] == [(None, None)] * 4
        assert all(t.sent is not None for t in told)
        due = sorted(b"onetwothreefour" + (b"\n" if message_type == 3 else b""))
        # What is sent is under way: nobody says when a hub has stored it.
        wait_until(lambda: sorted(b"".join(bytes(r.body) for r in hub.records("g", "s"))) == due)


def test_the_hub_answers_no_frame_that_asks_for_none() -> None:
    with Hub() as hub, closing(producer(hub.target, ack="none")) as p:
        for i in range(100):
            p.send("s", b"%d" % i).result(20)
        (connection,) = p.stats().connections
        assert (connection.sent_frames, connection.acked_frames, connection.read_bytes) == (100, 0, 0)


def test_a_server_that_answers_all_the_same_changes_nothing() -> None:
    def react(peer: Peer, frame: bytes) -> None:
        good(peer, frame.replace(b"isAck=false", b"isack=false"))

    with Scripted(react) as server, closing(producer(server.target, ack="none")) as p:
        for i in range(20):
            assert isinstance(p.send("s", b"%d" % i).result(20), dataproxy.Sent)
        server.wait(lambda: len(server.frames) == 20)
        p.close()
        assert (p.stats().unmatched_replies, p.report().sent, p.report().last_error) == (0, 20, None)


def test_an_await_returns_what_was_sent() -> None:
    async def main(target: str) -> None:
        async with dataproxy.AsyncProducer(target, group_id="g", ack="none") as p:
            one, two = await asyncio.gather(p.send("s", b"1"), p.send("s", b"2"))
            assert isinstance(one, dataproxy.Sent)
            assert isinstance(two, dataproxy.Sent)
            assert (await p.send_batch("s", [b"3", b"4"])).sent == 2
            assert p.report().sent == 4

    with Hub() as hub:
        asyncio.run(main(hub.target))


@pytest.mark.parametrize("message_type", _TYPES)
def test_a_hub_gives_the_sink_ack_after_its_commit(message_type: int) -> None:
    with Hub() as hub:
        with producer(hub.target, ack="sink", message_type=message_type) as p:
            assert isinstance(p.send("s", b"x").result(20), dataproxy.Delivered)
            assert p.flush(20.0).ok
        (record,) = hub.records("g", "s")
        assert bytes(record.body) == b"x"


def test_a_server_that_never_sends_sink_acks_gets_a_frame_once() -> None:
    with Scripted(silent) as server, closing(
        producer(server.target, ack="sink", delivery_timeout=1.0, ack_timeout=0.1, heartbeat="binary")
    ) as p:  # fmt: skip
        error = p.send("s", b"x").exception(20)
        assert isinstance(error, dataproxy.DeliveryExpired)
        assert (error.details["cause"], error.details["maybe_delivered"]) == ("NO_SINK_ACK", True)
        assert "no ack came from behind the message queue" in error.message
        assert 'ack="source"' in error.hint
        report = p.close()
        assert (report.expired, report.maybe_delivered, report.retries, len(server.frames)) == (1, 1, 0, 1)
        assert report.errors == {"NO_SINK_ACK": 1}
        assert len(server.peers) == 1, "the connection is kept: heartbeats are answered"


def test_order_by_key_needs_answers() -> None:
    with pytest.raises(ConfigError, match=r"ordering 'key'.*ack='source'"):
        dataproxy.Producer("tcp://127.0.0.1:1", group_id="g", ack="none", ordering="key")
