"""A producer of V1 packs, against the hub and against a server that flushes its answers with heartbeats alone."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

import dataproxy
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.hub import Hub
from tests.loopback.test_producer_faults import producer
from tests.support.reference.v1 import info, read_pack
from tests.support.scripted import Peer, Scripted

BODIES = [b"body %d " % i + b"x" * (i * 37 % 900) for i in range(500)]


class Unflushed(Scripted):
    """A server as InLong's: a V1 reply is written when a heartbeat is answered; too many of them close the connection.

    ``result`` is the answer to the pack with an id.
    """

    def __init__(self, results: Any = lambda pack_id: 0, most: int = 65536) -> None:
        self.kept: dict[int, bytes] = {}
        self.results = results
        self.most = most
        self.longest = 0
        super().__init__(self._keep)
        self.on_heartbeat = self._flush

    def _keep(self, peer: Peer, frame: bytes) -> None:
        header, _ = read_pack(frame)
        kept = self.kept.get(peer.number, b"") + info(self.results(header.packId), header.packId)
        self.kept[peer.number] = kept
        self.longest = max(self.longest, len(kept))
        if len(kept) > self.most:
            peer.close()

    def _flush(self, peer: Peer, frame: bytes) -> None:
        peer.send(self.kept.pop(peer.number, b"") + b"\0\0\0\1\1")

    def sent(self) -> list[bytes]:
        """Return the bodies that came."""
        return [message.body for _, frame in self.frames for message in read_pack(frame)[1]]


def send_all(p: dataproxy.Producer) -> None:
    """Send every body, each way of sending in turn."""
    for body in BODIES[:100]:
        p.send_nowait("s", body)
    for body in BODIES[100:200]:
        p.send("s", body)
    p.send_batch("s", BODIES[200:350])
    p.send_arrow("s", pa.table({"value": BODIES[350:]}))
    assert p.flush(30.0).ok


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_hub_stores_what_was_sent(compression: str) -> None:
    with Hub() as hub:
        with producer(hub.target, protocol="v1", compression=compression, compression_min_bytes=0) as p:
            send_all(p)
            first = p.stream("t", attrs={"app": "web"}).send(b"named", dt=1_700_000_000_123)
            assert isinstance(first.result(20), dataproxy.Delivered)
        assert sorted(bytes(r.body) for r in hub.records("g", "s")) == sorted(BODIES)
        (record,) = hub.records("g", "t")
        assert (record.attrs["app"], record.message_id, record.dt_ms) == ("web", first.id, 1_700_000_000_123)
        assert record.attrs["clientIp"] == "127.0.0.1"


def test_a_server_that_never_flushes_by_itself_is_shaken() -> None:
    with Unflushed() as server, closing(producer(server.target, protocol="v1", ack_timeout=20.0)) as p:
        send_all(p)
        report = p.close()
    assert (report.delivered, report.retries) == (len(BODIES), 0)
    assert sorted(server.sent()) == sorted(BODIES)


def test_replies_never_pile_up_at_the_server() -> None:
    with Unflushed() as server, closing(producer(server.target, protocol="v1", batch_messages=1, linger=0)) as p:
        for _ in range(10):
            p.send_batch("s", BODIES)
        assert p.flush(30.0).ok
        assert server.longest < 20_000
        assert len(server.peers) == 1


@pytest.mark.parametrize(
    ("result", "error", "code"),
    [
        (-105, dataproxy.DeliveryError, None),
        (-104, dataproxy.DeliveryFailed, 123),
        (-103, dataproxy.DeliveryExpired, None),
    ],
)
def test_a_result_code_is_told(result: int, error: type[Exception], code: int | None) -> None:
    with Unflushed(lambda pack_id: result) as server, closing(
        producer(server.target, protocol="v1", delivery_timeout=1.0, ack_timeout=0.3)
    ) as p:  # fmt: skip
        found = p.send("s", b"x").exception(20)
        assert isinstance(found, error)
        assert found.details["last_code"] in (114, 115, 123)
        assert f"V1 result {result}" in str(found)
        assert code is None or found.code == code
        (back,) = p.undelivered()
        assert (back.body, back.attrs.get("_")) == (b"x", None)


def test_undelivered_bodies_come_back_whole() -> None:
    with Unflushed(lambda pack_id: -104) as server, closing(
        producer(server.target, protocol="v1", compression="snappy", compression_min_bytes=300)
    ) as p:  # fmt: skip
        assert p.send_batch("s", BODIES).result(20).delivered == 0
        assert sorted(m.body for m in p.undelivered()) == sorted(BODIES)


def test_a_hub_with_faults_loses_nothing() -> None:
    with Hub() as hub, closing(producer(hub.target, protocol="v1", ack_timeout=0.3, connections=2, linger=0.001)) as p:
        hub.faults.add("refuse", code=114, times=3)
        for kind in ("drop_reply", "duplicate", "foreign_id", "slice"):
            hub.faults.add(kind, times=3)
        for body in BODIES:
            p.send_nowait("s", body)
            if len(body) % 50 == 0:
                p.flush(20.0)
        assert p.flush(20.0).ok
        assert {bytes(r.body) for r in hub.records("g", "s")} == set(BODIES)


def test_v1_and_v0_producers_share_a_hub() -> None:
    with Hub() as hub, producer(hub.target, protocol="v1") as one, producer(hub.target) as other:
        one.send("s", b"1").result(20)
        other.send("s", b"0").result(20)
        assert sorted(bytes(r.body) for r in hub.records("g", "s")) == [b"0", b"1"]


def test_a_manager_is_asked_for_tcp_nodes() -> None:
    with Hub(nodes=2) as hub, producer(hub.manager_url, protocol="v1") as p:
        assert p.send("s", b"x").result(20).node in {node.tcp.address for node in hub.nodes}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ack": "none"}, "ack 'none' cannot be asked for with protocol 'v1'"),
        ({"ack": "sink"}, "ack 'sink' cannot be asked for"),
        ({"joined_lines": True}, "joined_lines is of message_type 7"),
        ({"exact_time": True}, "protocol 'v1' has no attributes of single messages"),
        ({"trace_address": "fd00::1"}, "sourceIp of V1 takes IPv4"),
    ],
)
def test_what_v1_has_no_place_for_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        dataproxy.Producer("tcp://127.0.0.1:1", group_id="g", protocol="v1", **options)


def test_messages_have_neither_attributes_nor_ids() -> None:
    with Unflushed() as server, closing(producer(server.target, protocol="v1")) as p:
        for extra in ({"attrs": {"k": "v"}}, {"message_id": "i"}):
            with pytest.raises(InvalidMessageError):
                p.send("s", b"x", **extra)
        assert p.close().accepted == 0
