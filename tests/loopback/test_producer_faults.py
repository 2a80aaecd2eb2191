"""The producer against proxies that misbehave, over real sockets."""

import threading
from collections.abc import Callable
from contextlib import closing

import pytest

import dataproxy
from tests.sim.proxy import frame_seq
from tests.support.scripted import Peer, Scripted, ack, good, only_accept, refusal, silent

FAST = {
    "linger": 0.001, "retry_backoff": 0.001, "retry_backoff_max": 0.01, "reconnect_backoff": 0.001,
    "reconnect_backoff_max": 0.01, "heartbeat": "off",
}  # fmt: skip


def producer(target: str, **options: object) -> dataproxy.Producer:
    """Return a producer that retries quickly."""
    return dataproxy.Producer(target, group_id="g", **{**FAST, **options})


def test_a_refused_frame_goes_to_the_other_proxy_with_the_same_bytes() -> None:
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 1))) as bad, Scripted() as fine:
        with producer(f"tcp://{bad.address},{fine.address}") as p:
            bad.wait(lambda: bad.peers)
            fine.wait(lambda: fine.peers)
            while not bad.frames:
                p.send("s", b"body").result()
            report = p.flush()
        assert report.ok
        refused = [frame for _, frame in bad.frames]
        taken = {frame_seq(frame): frame for _, frame in fine.frames}
        assert refused
        assert all(taken[frame_seq(frame)] == frame for frame in refused)
        assert report.retries >= len(refused)


def test_a_drained_node_is_left_alone() -> None:
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 2))) as bad, Scripted() as fine:
        with producer(f"tcp://{bad.address},{fine.address}", linger=0) as p:
            bad.wait(lambda: bad.peers)
            fine.wait(lambda: fine.peers)
            while not bad.frames:
                p.send("s", b"x").result()
            for _ in range(100):
                p.send("s", b"x").result()
        assert len(bad.frames) == 1


@pytest.mark.parametrize(("code", "text"), [(110, b"bad type"), (10, b""), (94, b"x" * 600)])
def test_a_permanent_code_fails_at_once_with_that_code(code: int, text: bytes) -> None:
    with (
        Scripted(lambda peer, frame: peer.send(refusal(frame, code, text))) as server,
        closing(producer(server.target)) as p,
    ):
        with pytest.raises(dataproxy.DeliveryFailed) as caught:
            p.send("s", b"x").result(20)
        assert caught.value.details["attempts"] == 1
        assert str(code) in str(caught.value.code)
        assert len(server.frames) == 1
        assert p.close().errors == {code: 1}


def test_a_late_code_is_tried_until_unknown_group_timeout() -> None:
    with (
        Scripted(lambda peer, frame: peer.send(refusal(frame, 121))) as server,
        closing(producer(server.target, unknown_group_timeout="500ms")) as p,
    ):
        error = p.send("s", b"x").exception(20)
        assert isinstance(error, dataproxy.DeliveryFailed)
        assert len({frame for _, frame in server.frames}) == 1
        assert len(server.frames) == error.details["attempts"] > 1
        assert not error.details["maybe_delivered"]
        p.close()


def test_code_120_means_stored() -> None:
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 120))) as server, producer(server.target) as p:
        assert p.send("s", b"x").result(20).attempts == 1


def test_a_dropped_ack_is_asked_for_again() -> None:
    first: list[bytes] = []

    def react(peer: Peer, frame: bytes) -> None:
        if first:
            peer.send(ack(frame))
        first.append(frame)

    with Scripted(react) as server, producer(server.target, ack_timeout=0.05) as p:
        got = p.send("s", b"x").result(20)
        assert got.attempts == 2
        assert server.frames[0][1] == server.frames[1][1]
        assert p.flush().retries == 1


def test_a_silent_proxy_is_replaced_and_its_frames_move() -> None:
    with Scripted(silent) as dumb, Scripted() as fine:
        with producer(f"tcp://{dumb.address},{fine.address}", ack_timeout=0.05) as p:
            dumb.wait(lambda: dumb.peers)
            fine.wait(lambda: fine.peers)
            for _ in range(20):
                assert p.send("s", b"x").result(20)
            dumb.wait(lambda: not dumb.frames or dumb.ended)
        assert dumb.frames


def test_acks_that_come_late_twice_and_out_of_order_settle_once() -> None:
    held: list[tuple[Peer, bytes]] = []

    def react(peer: Peer, frame: bytes) -> None:
        held.append((peer, frame))
        if len(held) == 20:
            for who, what in reversed(held):
                who.send(ack(what) + ack(what))

    results: list[dataproxy.DeliveryResult] = []
    with Scripted(react) as server:
        with producer(server.target, linger=0, batch_messages=1, on_delivery=results.append) as p:
            for i in range(20):
                p.send_nowait("s", b"%d" % i)
            report = p.flush(20)
            assert p.stats().balanced
        assert report.delivered == 20
    assert len(results) == 20
    assert all(r.delivered for r in results)


def test_a_success_that_comes_after_the_resend_settles_it() -> None:
    frames: list[bytes] = []

    def react(peer: Peer, frame: bytes) -> None:
        frames.append(frame)
        if len(frames) == 3:
            peer.send(ack(frames[0]))
        elif frame != frames[0]:
            peer.send(ack(frame))

    with Scripted(react) as server, producer(server.target, ack_timeout=0.05, batch_messages=1) as p:
        slow = p.send("s", b"slow")
        server.wait(lambda: frames)
        assert p.send("s", b"other").result(20)  # the connection is alive
        assert slow.result(20).attempts >= 2
        report = p.flush(20)
        assert report.delivered == 2
        assert report.duplicates_possible >= 1


def test_a_connection_closed_in_the_middle_of_a_frame() -> None:
    cut = threading.Event()

    def meet(peer: Peer) -> None:
        if peer.number == 0:
            peer.sock.recv(1000)
            cut.set()
            peer.reset()

    with Scripted() as server:
        server.on_connect = meet
        with producer(server.target, buffer_bytes="8MiB") as p:
            body = b"z" * 400_000
            deliveries = [p.send("s", body) for _ in range(4)]
            assert [d.result(20) is not None for d in deliveries] == [True] * 4
        assert cut.is_set()
        assert server.bodies() == [body] * 4
        assert {number for number, _ in server.frames} == {1}


def test_a_proxy_that_stops_reading_gets_the_rest_later() -> None:
    with Scripted(receive_buffer=4096) as server:
        server.reading.clear()
        with producer(server.target, batch_bytes=100_000, buffer_bytes="64MiB") as p:
            bodies = [bytes([i]) * 100_000 for i in range(60)]
            sent = p.send_batch("s", bodies)
            assert not sent.done()
            server.reading.set()
            assert sent.result(30).ok
        assert sorted(server.bodies()) == bodies
        assert len(server.frames) == 60


def test_replies_in_single_bytes_and_frames_of_unknown_type() -> None:
    def react(peer: Peer, frame: bytes) -> None:
        peer.send_single(b"\x00\x00\x00\x05\x7fABCD" + ack(frame))

    with Scripted(react) as server, producer(server.target) as p:
        for i in range(5):
            assert p.send("s", b"%d" % i).result(20).attempts == 1
        assert len(server.peers) == 1


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 64, b"\x00\x00\x00\x00"])
def test_garbage_closes_that_connection_alone(garbage: bytes) -> None:
    def react(peer: Peer, frame: bytes) -> None:
        peer.send(ack(frame) if peer.number else garbage)

    with Scripted(react) as server, producer(server.target) as p:
        assert p.send("s", b"x").result(20).attempts == 2
        assert len(server.peers) == 2


def test_a_connect_that_is_never_answered_times_out() -> None:
    with only_accept() as target, Scripted() as fine:
        with producer(f"{target},{fine.address}", connect_timeout=0.05) as p:
            for _ in range(10):
                assert p.send("s", b"x").result(20)
        assert len(fine.frames) == 10


def test_nobody_listens_then_somebody_does() -> None:
    gate = Scripted()
    port = gate.port
    gate.close()
    p = producer(f"tcp://127.0.0.1:{port}", delivery_timeout=30)
    try:
        delivery = p.send("s", b"x")
        with pytest.raises(dataproxy.DeliveryPending):
            delivery.result(0.05)
        with Scripted(port=port):
            assert delivery.result(20).attempts == 1
            p.close()
    finally:
        p.close(0)


def test_nothing_answers_until_the_deadline() -> None:
    with only_accept() as target:
        p = producer(target, delivery_timeout=0.2, connect_timeout=5.0)
        error = p.send("s", b"x").exception()
        assert isinstance(error, dataproxy.DeliveryExpired)
        assert error.details["attempts"] == 0
        assert not error.details["maybe_delivered"]
        report = p.close(1)
        assert (report.expired, report.pending, report.maybe_delivered) == (1, 0, 0)


def more_heartbeats(server: Scripted) -> Callable[[], bool]:
    """Return the condition that another heartbeat came."""
    before = len(server.heartbeats)
    return lambda: len(server.heartbeats) > before


def test_heartbeats_flow_when_idle_and_report_the_load() -> None:
    with Scripted() as server, producer(server.target, heartbeat="binary", heartbeat_interval=0.02) as p:
        server.wait(lambda: len(server.heartbeats) >= 3)
        while p.stats().connections[0].load is None:
            server.wait(more_heartbeats(server))
        assert p.stats().connections[0].load == 5
        assert len(server.peers) == 1


@pytest.mark.parametrize("kind", ["binary", "message"])
def test_unanswered_heartbeats_replace_the_connection(kind: str) -> None:
    with Scripted() as server:
        server.on_heartbeat = lambda peer, frame: good(peer, frame) if peer.number else None
        with producer(server.target, heartbeat=kind, heartbeat_interval=0.02, heartbeat_retries=2) as p:
            server.wait(lambda: len(server.peers) >= 2)
            assert [number for number, _ in server.heartbeats].count(0) == 2
            server.wait(lambda: 0 in server.ended)
            assert p.send("s", b"x").result(20)
            assert p.stats().connections[0].losses == 1


def test_close_at_its_deadline_reports_closed() -> None:
    with Scripted(silent) as server:
        p = producer(server.target)
        delivery = p.send("s", b"x")
        server.wait_frames(1)
        report = p.close(0.05)
        assert (report.failed, report.pending, report.errors) == (1, 0, {"CLOSED": 1})
        assert report.maybe_delivered == 1
        error = delivery.exception(0)
        assert isinstance(error, dataproxy.DeliveryFailed)
        assert error.details["maybe_delivered"]
        assert p.close() == report


def test_leaving_the_block_raises_what_was_not_delivered() -> None:
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 110))) as server:
        with pytest.raises(dataproxy.UndeliveredError) as caught, producer(server.target) as p:
            p.send_nowait("s", b"x")
        assert caught.value.report.failed == 1


def test_use_after_close() -> None:
    with Scripted() as server:
        with producer(server.target) as p:
            handle = p.stream("s")
            delivery = p.send("s", b"x")
        for call in (
            lambda: p.send("s", b"x"),
            lambda: p.send_nowait("s", b"x"),
            lambda: p.send_batch("s", [b"x"]),
            lambda: handle.send(b"x"),
            lambda: handle.send_batch([b"x"]),
            lambda: p.stream("other"),
        ):
            with pytest.raises(dataproxy.ClosedError):
                call()
        assert delivery.result(0)
        assert p.report().accepted == 1
        assert p.flush(1).ok


def test_several_executors_share_the_proxies() -> None:
    with Scripted() as one, Scripted() as two:
        with producer(f"tcp://{one.address},{two.address}", executors=2, batch_messages=1, linger=0) as p:
            one.wait(lambda: one.peers)
            two.wait(lambda: two.peers)
            sent = [p.send("s", b"%d" % i) for i in range(200)]
            assert all(d.result(20) for d in sent)
            assert {connection.executor for connection in p.stats().connections} == {0, 1}
        assert one.frames
        assert two.frames
        assert len(set(one.bodies() + two.bodies())) == 200


def test_compressed_packs_arrive_whole() -> None:
    with Scripted() as server:
        with producer(server.target, compression="snappy") as p:
            bodies = [b"the same text again and again %d" % (i % 3) for i in range(5000)]
            assert p.send_batch("s", bodies).result(20).ok
        assert server.bodies() == bodies
        assert sum(len(frame) for _, frame in server.frames) < sum(map(len, bodies)) // 2


@pytest.mark.parametrize("connections", [1, 4])  # one: the order of the list decides; one to each: the choice does
def test_fresh_producers_begin_with_different_proxies(monkeypatch: pytest.MonkeyPatch, connections: int) -> None:
    drawn = iter(range(20))
    monkeypatch.setattr("dataproxy.producer.producer.order_seed", lambda: next(drawn))
    with Scripted() as a, Scripted() as b, Scripted() as c, Scripted() as d:
        servers = (a, b, c, d)
        for _ in range(20):
            target = "tcp://" + ",".join(server.address for server in servers)
            with producer(target, connections=connections) as p:
                p.send("s", b"x").result(20)
        assert sum(len(server.frames) for server in servers) == 20
        assert sum(bool(server.frames) for server in servers) >= 3
