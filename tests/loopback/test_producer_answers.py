"""Which answers a producer believes, and what its caller hears of the others, over real sockets."""

import logging
from contextlib import closing, suppress

import pytest

import dataproxy
from dataproxy.hub import Hub
from tests.loopback.test_producer_faults import producer
from tests.sim.proxy import frame_seq
from tests.support.scripted import Peer, Scripted, ack, silent


def renumbered(reply: bytes, number: int) -> bytes:
    """Return an answer of type 7 that names another frame."""
    return reply[:5] + (number & 0xFFFFFFFF).to_bytes(4, "big") + reply[9:]


def test_nobody_delivers_what_another_proxy_keeps_to_itself(caplog: pytest.LogCaptureFixture) -> None:
    def claim(peer: Peer, frame: bytes) -> None:
        own = ack(frame)
        peer.send(b"".join(renumbered(own, frame_seq(kept)) for _, kept in dumb.frames) + own)

    with (
        caplog.at_level(logging.INFO, "dataproxy"),
        Scripted(silent) as dumb,
        Scripted(claim) as wrong,
        closing(producer(f"tcp://{dumb.address},{wrong.address}", ack_timeout=20.0)) as p,
    ):
        dumb.wait(lambda: dumb.peers)
        wrong.wait(lambda: wrong.peers)
        sent = {}
        while not dumb.frames or len(wrong.frames) < 5:
            sent[b"%d" % len(sent)] = p.send("s", b"%d" % len(sent))
            with suppress(dataproxy.FlushTimeout):
                p.flush(0.1)
        for body, delivery in sent.items():
            if body not in dumb.bodies():
                assert delivery.result(20).node == wrong.address
        assert [body for body, delivery in sent.items() if not delivery.done()] == dumb.bodies()
        assert p.stats().unmatched_replies >= 1
        p.close(0.0)
    assert any("was not sent over this connection" in record.getMessage() for record in caplog.records)


def test_a_hub_that_answers_for_another_connection_is_not_believed() -> None:
    with Hub() as hub, closing(producer(hub.target, connections=2, delivery_timeout=20.0, ack_timeout=0.2)) as p:
        p.send("s", b"first").result(20)
        hub.faults.add("foreign_id", number="other", times=50)
        deliveries = [p.send("s", b"%d" % i) for i in range(100)]
        assert p.flush(20.0).ok
        assert all(d.done() for d in deliveries)
        assert {bytes(r.body) for r in hub.records("g", "s")} >= {b"%d" % i for i in range(100)}


def test_the_reason_of_a_long_refusal_is_heard_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(peer: Peer, frame: bytes) -> None:
        text = b"errCode=114&errMsg=the queue is full, says a server of many words" + b"!" * 5000
        body = b"\x07" + frame[17:21] + len(text).to_bytes(2, "big") + text + b"\xee\x01"
        peer.send(len(body).to_bytes(4, "big") + body)

    with (
        caplog.at_level(logging.WARNING, "dataproxy"),
        Scripted(refuse) as server,
        closing(producer(server.target, delivery_timeout=0.5, max_frame_bytes=2048, batch_bytes=1024)) as p,
    ):
        error = p.send("s", b"x").exception(20)
        p.close()
    assert isinstance(error, dataproxy.DeliveryExpired)
    assert "the queue is full, says a server of many words" in str(error)
    assert error.details["last_code"] == 114
    assert error.details["last_reason"].startswith("the queue is full")
    assert len(server.peers) == 1, "no connection was given up for it"
    said = [record.getMessage() for record in caplog.records if "refused a frame" in record.getMessage()]
    assert len(said) == 1
    assert "code 114" in said[0]
    assert "a server of many words" in said[0]


def test_the_last_reason_is_heard_although_the_connection_was_lost_later() -> None:
    def refuse_then_hang_up(peer: Peer, frame: bytes) -> None:
        if len(server.frames) == 1:
            text = b"errCode=1&errMsg=no queue yet"
            body = b"\x07" + frame[17:21] + len(text).to_bytes(2, "big") + text + b"\xee\x01"
            peer.send(len(body).to_bytes(4, "big") + body)
        else:
            peer.close()

    with Scripted(refuse_then_hang_up) as server, closing(producer(server.target, delivery_timeout=0.5)) as p:
        error = p.send("s", b"x").exception(20)
        p.close()
    assert isinstance(error, dataproxy.DeliveryExpired)
    assert error.details["cause"] == "CONNECTION_LOST"
    assert (error.details["last_code"], error.details["last_reason"]) == (1, "no queue yet")
    assert "the last refusal by a proxy was code 1" in str(error)


@pytest.mark.parametrize("message_type", [5, 3])
def test_a_refusal_without_mid_is_understood(message_type: int) -> None:
    def refuse(peer: Peer, frame: bytes) -> None:
        attrs = b"dpIp=127.0.0.1&errCode=104&errMsg=lengths disagree"
        body = frame[4:5] + (1).to_bytes(4, "big") + b"2" + len(attrs).to_bytes(4, "big") + attrs
        peer.send(len(body).to_bytes(4, "big") + body)

    with Scripted(refuse) as server, closing(producer(server.target, message_type=message_type)) as p:
        error = p.send("s", b"x").exception(20)
        p.close()
    assert isinstance(error, dataproxy.DeliveryFailed)
    assert error.code == 104
    assert "lengths disagree" in str(error)


def test_code_94_makes_a_new_connection() -> None:
    def refuse_once(peer: Peer, frame: bytes) -> None:
        text = b"errCode=94&errMsg=magicInMsg(1) != 60929"
        body = b"\x07" + frame[17:21] + len(text).to_bytes(2, "big") + text + b"\xee\x01"
        peer.send(len(body).to_bytes(4, "big") + body if len(server.frames) == 1 else ack(frame))

    with Scripted(refuse_once) as server, closing(producer(server.target)) as p:
        error = p.send("s", b"x").exception(20)
        assert isinstance(error, dataproxy.DeliveryFailed)
        assert (error.code, error.retriable) == (94, False)
        p.send("s", b"y").result(20)
        assert [connection for connection, _ in server.frames] == [0, 1]
        p.close()


def test_an_ack_timeout_of_our_own_is_named_as_the_cause() -> None:
    with Scripted(silent) as server, closing(producer(server.target, ack_timeout=0.05, delivery_timeout=0.4)) as p:
        error = p.send("s", b"x").exception(20)
        p.close()
    assert isinstance(error, dataproxy.DeliveryExpired)
    assert error.details["cause"] == "ACK_TIMEOUT"
    assert "ack_timeout" in str(error)
