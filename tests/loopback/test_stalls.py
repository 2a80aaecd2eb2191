"""Connections on which bytes wait and nothing moves, over real sockets."""

import socket
import threading
from contextlib import closing

import dataproxy
from dataproxy.testing import FaultProxy
from tests.native.probe_wire import Wire
from tests.sim.proxy import frame_seq
from tests.support.scripted import Peer, Scripted, ack

MEBIBYTE = 1 << 20
BODY = bytes(12 * MEBIBYTE)  # more than the buffers of a connection take, so that it is always half written
OPTIONS = {
    "group_id": "g", "linger": 0, "retry_backoff": 0.001, "retry_backoff_max": 0.01, "reconnect_backoff": 0.001,
    "reconnect_backoff_max": 0.01, "max_frame_bytes": 16 * MEBIBYTE,
}  # fmt: skip


def _answer_at_once(peer: Peer, frame: bytes) -> None:
    """Answer by the frame's number alone: judging all of its bytes can take longer than an answer may.

    No attempt would succeed then, however often it is made.
    """
    small = Wire().frame(b"\x00\x00\x00\x01x", b"groupId=g&streamId=s", seq=frame_seq(frame))
    peer.send(ack(small))


def test_a_half_written_frame_moves_when_its_peer_stops_reading() -> None:
    with Scripted(receive_buffer=4096) as dumb, Scripted(_answer_at_once) as fine:
        dumb.reading.clear()
        target = f"tcp://{dumb.address},{fine.address}"
        with closing(dataproxy.Producer(target, ack_timeout=0.3, delivery_timeout=20, **OPTIONS)) as p:
            dumb.wait(lambda: dumb.peers)
            fine.wait(lambda: fine.peers)
            sent = [p.send("s", BODY) for _ in range(4)]
            assert {one.result(60).node for one in sent} == {fine.address}
            dumb.reading.set()
        assert not dumb.frames


def test_a_host_that_vanished_keeps_nothing() -> None:
    with Scripted() as gone, Scripted() as fine, FaultProxy(gone.address) as network:
        target = f"{network.target},{fine.address}"
        with dataproxy.Producer(target, ack_timeout=0.3, delivery_timeout=20, **OPTIONS) as p:
            while not gone.frames or not fine.frames:
                p.send("s", b"before").result(20)
            network.add("vanish")
            attempts = 1
            while attempts == 1:  # until some were on their way to it
                results = [one.result(20) for one in [p.send("s", b"after") for _ in range(200)]]
                assert {one.node for one in results} == {fine.address}
                attempts = max(one.attempts for one in results)
        assert b"after" not in gone.bodies()


def _slow_proxy(listener: socket.socket, frames: list[bytes]) -> None:
    """Answer one connection, and read it in sips: the frame takes many times what its answer may take."""
    pace = threading.Event()
    sock, _ = listener.accept()
    received = bytearray()
    with sock:
        while part := sock.recv(4096):
            received += part
            pace.wait(0.02)
            if len(received) >= 4 and len(received) == 4 + int.from_bytes(received[:4], "big"):
                frames.append(bytes(received))
                received.clear()
                sock.sendall(ack(frames[-1]))


def test_a_slow_connection_that_moves_is_kept() -> None:
    frames: list[bytes] = []
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=_slow_proxy, args=(listener, frames), daemon=True)
        thread.start()
        target = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        options = {**OPTIONS, "heartbeat": "off", "connections": 1}
        with dataproxy.Producer(target, ack_timeout=1, delivery_timeout=40, **options) as p:
            assert p.send("s", bytes(600_000)).result(40).attempts == 1
            (connection,) = p.stats().connections
            assert (connection.connects, connection.losses) == (1, 0)
            assert p.stats().retries == 0
        thread.join(30)
    assert len(frames) == 1
