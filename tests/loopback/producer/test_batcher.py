"""How messages become packs, and the limits of the buffer, through the public API."""

import threading

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from tests.native.probe_wire import Server
from tests.support.scripted import Peer, Scripted, ack, silent

T0 = 1_577_836_800_000


@pytest.fixture(scope="module")
def nowhere() -> str:
    """Return a target that refuses every connection."""
    with Scripted() as server:
        return server.target


def idle(target: str, **options: object) -> dataproxy.Producer:
    """Return a producer that seals packs only when it must."""
    return dataproxy.Producer(target, group_id="g", linger=60, **options)


def counts(server: Scripted) -> list[int]:
    """Return the messages of each frame."""
    judge = Server()
    return [judge.serve(frame, 0)["records"] for _, frame in server.frames]


@pytest.mark.parametrize("size", [1, 60, 96, 333])
@pytest.mark.parametrize("limit", [1024, 1500, 4096])
def test_buffer_bytes_to_the_byte(nowhere, size, limit) -> None:
    p = idle(nowhere, buffer_bytes=limit, on_full="raise")
    fits = limit // (size + 4)
    for _ in range(fits):
        p.send_nowait("s", b"x" * size)
    assert p.stats().buffered_bytes == fits * (size + 4) <= limit
    with pytest.raises(dataproxy.BufferFullError) as caught:
        p.send_nowait("s", b"x" * size)
    assert caught.value.details == {"limit_bytes": limit, "accepted": 0}
    left = limit - fits * (size + 4)
    if left > 4:
        p.send_nowait("s", b"y" * (left - 4))
        assert p.stats().buffered_bytes == limit
    p.close(0)
    assert p.report().balanced


@pytest.mark.parametrize("attrs", [None, {"k": "v"}])
def test_a_batch_that_fits_exactly_is_accepted_whole_or_not_at_all(nowhere, attrs) -> None:
    each = 100 + (8 + len("k=v") if attrs else 4)
    p = idle(nowhere, buffer_bytes=each * 20, on_full="raise")
    with pytest.raises(dataproxy.BufferFullError):
        p.send_batch("s", [b"x" * 100] * 21, attrs=attrs)
    assert p.stats().accepted == 0
    p.send_batch("s", [b"x" * 100] * 20, attrs=attrs)
    assert p.stats().buffered_bytes == each * 20
    p.close(0)


def test_a_record_batch_that_fits_exactly_is_accepted_whole_or_not_at_all(nowhere) -> None:
    p = idle(nowhere, buffer_bytes=1040, on_full="raise")
    for n, accepted in ((11, 0), (10, 10)):
        rows = pa.record_batch({"v": [b"x" * 100] * n})
        if accepted:
            send_record_batch(p, rows, value=0, group="g", stream="s")
        else:
            with pytest.raises(dataproxy.BufferFullError):
                send_record_batch(p, rows, value=0, group="g", stream="s")
        assert p.stats().accepted == accepted
    p.close(0)


def test_buffer_messages(nowhere) -> None:
    p = idle(nowhere, buffer_messages=10, on_full="raise")
    with pytest.raises(dataproxy.BufferFullError):
        p.send_batch("s", [b"x"] * 11)
    p.send_batch("s", [b"x"] * 9)
    p.send("s", b"x")
    with pytest.raises(dataproxy.BufferFullError):
        p.send("s", b"x")
    assert p.stats().accepted == 10
    p.close(0)


def test_max_block_ends_a_wait_and_says_what_was_accepted(nowhere) -> None:
    p = idle(nowhere, buffer_bytes=1040, max_block=0.03)
    with pytest.raises(dataproxy.BufferFullError, match="max_block") as caught:
        p.send_batch("s", [b"x" * 100] * 15)
    assert caught.value.details["accepted"] == 10 == p.stats().accepted
    with pytest.raises(dataproxy.BufferFullError):
        p.send_nowait("s", b"x" * 100)
    rows = pa.record_batch({"v": [b"x" * 100] * 15})
    with pytest.raises(dataproxy.BufferFullError):
        send_record_batch(p, rows, value=0, group="g", stream="s")
    assert p.stats().accepted == 10
    p.close(0)


def test_skipped_rows_are_not_counted_as_accepted(nowhere) -> None:
    p = idle(nowhere, buffer_bytes=1040, max_block=0.01, null_value="skip", empty_value="skip")
    values = [b"x" * 100, None, b""] * 15
    for call in (
        lambda: send_record_batch(p, pa.record_batch({"v": values}), value=0, group="g", stream="s"),
        lambda: p.send_arrow("s", pa.array(values)),
    ):
        before = p.stats().accepted
        with pytest.raises(dataproxy.BufferFullError) as caught:
            call()
        assert caught.value.details["accepted"] == p.stats().accepted - before
    assert p.stats().accepted == 10
    p.close(0)


def test_a_blocked_sender_goes_on_when_there_is_room() -> None:
    held: list[tuple[Peer, bytes]] = []
    free = threading.Event()

    def react(peer: Peer, frame: bytes) -> None:
        if free.is_set():
            peer.send(ack(frame))
        else:
            held.append((peer, frame))

    with Scripted(react) as server, idle(server.target, buffer_bytes=10_400) as p:
        thread = threading.Thread(target=p.send_batch, args=("s", [b"x" * 100] * 1000))
        thread.start()
        server.wait(lambda: held)  # what was open is sealed by the one who waits
        assert thread.is_alive()
        assert p.stats().buffered_bytes <= 10_400
        free.set()
        for peer, frame in held:
            peer.send(ack(frame))
        thread.join(30)
        assert not thread.is_alive()
        assert p.flush(20).delivered == 1000
        assert len(server.bodies()) == 1000


def test_close_wakes_a_blocked_sender() -> None:
    errors: list[Exception] = []

    def send(p: dataproxy.Producer) -> None:
        try:
            p.send_batch("s", [b"x" * 100] * 1000)
        except dataproxy.DataProxyError as error:
            errors.append(error)

    with Scripted(silent) as server:
        p = idle(server.target, buffer_bytes=10_400)
        thread = threading.Thread(target=send, args=(p,))
        thread.start()
        server.wait_frames(1)
        report = p.close(0.05)
        thread.join(30)
    assert isinstance(errors[0], dataproxy.ClosedError)
    assert report.accepted == report.failed == 100
    assert report.balanced


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch_bytes": 1040}, [10, 10, 5]),
        ({"batch_bytes": 1039}, [9, 9, 7]),
        ({"batch_messages": 7}, [7, 7, 7, 4]),
        ({"batch_messages": 1}, [1] * 25),
        ({"batch_bytes": 1}, [1] * 25),
        ({}, [25]),
    ],
)
@pytest.mark.parametrize("way", ["send", "batch", "rows", "attrs"])
def test_packs_end_at_their_limits(options, expected, way) -> None:
    size = 93 if way == "attrs" else 100
    with Scripted() as server:
        with idle(server.target, connections=1, **options) as p:
            if way == "send":
                for _ in range(25):
                    p.send_nowait("s", b"x" * size)
            elif way == "rows":
                send_record_batch(p, pa.record_batch({"v": [b"x" * size] * 25}), value=0, group="g", stream="s")
            else:
                p.send_batch("s", [b"x" * size] * 25, attrs={"a": "b"} if way == "attrs" else None)
            p.flush(20)
        assert counts(server) == expected


def test_linger_sends_without_a_flush() -> None:
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g", linger=0.001) as p:
        p.send_nowait("s", b"x")
        server.wait_frames(1)
    with Scripted() as server, idle(server.target) as p:
        for _ in range(100):
            p.send_nowait("s", b"x")
        assert p.stats().open == 100
        p.flush(20)
        assert counts(server) == [100]


def test_the_oldest_of_too_many_open_packs_is_sealed() -> None:
    with Scripted() as server:
        with idle(server.target, max_open_packs=3) as p:
            for second in (1, 2, 3, 1, 2, 3):
                p.send_nowait("s", b"x", dt=T0 + second * 1000)
            assert (p.stats().open, p.stats().in_flight_frames) == (6, 0)
            p.send_nowait("s", b"x", dt=T0 + 4000)
            server.wait_frames(1)
            assert p.stats().open == 5
            p.flush(20)
        assert sorted(counts(server)) == [1, 2, 2, 2]


def test_rows_in_mixed_time_order_do_not_end_in_tiny_packs() -> None:
    with Scripted() as server:
        with idle(server.target, batch_bytes="1MiB", max_frame_bytes="2MiB") as p:
            for i in range(3000):
                p.send_nowait("s", b"%d" % i, dt=T0 + (i * 7 % 12) * 1000)
            p.flush(20)
        assert counts(server) == [250] * 12
        judge = Server()
        assert sorted({judge.serve(frame, 0)["data_time_ms"] for _, frame in server.frames}) == [
            T0 + second * 1000 for second in range(12)
        ]


def test_pack_seconds_lets_spans_share_a_pack() -> None:
    with Scripted() as server:
        with idle(server.target, pack_seconds=10) as p:
            for second in range(30):
                p.send_nowait("s", b"x", dt=T0 + second * 1000)
            p.flush(20)
        assert counts(server) == [10, 10, 10]


def test_exact_time_travels_as_an_attribute() -> None:
    with Scripted() as server:
        with idle(server.target, exact_time=True) as p:
            p.send_nowait("s", b"a", dt=T0 + 123)
            p.send_nowait("s", b"b", dt=T0 + 456, attrs={"k": "v"})
            p.send_nowait("s", b"c")
            p.flush(20)
        got = dict(server.messages())
        assert got[b"a"]["dtMs"] == str(T0 + 123)
        assert (got[b"b"]["dtMs"], got[b"b"]["k"]) == (str(T0 + 456), "v")
        assert "dtMs" not in got[b"c"]


def test_an_open_pack_without_a_message_is_never_sent() -> None:
    with Scripted() as server:
        with idle(server.target, max_open_packs=1, null_value="skip") as p:
            assert p.send_arrow("s", pa.array([None, None], pa.binary()), dt=T0).result(20).skipped == 2
            p.send_nowait("s", b"x", dt=T0 + 5000)
            assert p.flush(20).delivered == 1
            assert p.stats().in_flight_frames == 0
        assert counts(server) == [1]


@pytest.mark.parametrize("kind", [3, 5, 7])
def test_every_message_type_delivers(kind) -> None:
    with Scripted() as server:
        with idle(server.target, message_type=kind) as p:
            sent = p.send_batch("s", [b"a", b"bb", b"ccc"])
            p.flush(20)
            assert sent.result(0).ok
        assert b"\n".join(server.bodies()) == b"a\nbb\nccc"


def test_lines_take_no_line_feed(nowhere) -> None:
    p = idle(nowhere, message_type=3)
    for call in (lambda: p.send("s", b"a\nb"), lambda: p.send_batch("s", [b"ok", b"a\nb"])):
        with pytest.raises(dataproxy.InvalidMessageError):
            call()
    assert p.stats().accepted == 0
    p.close(0)


@pytest.mark.parametrize("attrs", [None, {"k": "v" * 500}])
@pytest.mark.parametrize("way", ["send", "batch", "rows"])
def test_the_largest_body_fits_and_one_byte_more_is_refused(attrs, way) -> None:
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g", max_frame_bytes=4096) as p:

        def send(n: int) -> None:
            if way == "send":
                p.send_nowait("s", b"x" * n, attrs=attrs)
            elif way == "batch":
                p.send_batch("s", [b"x" * n], attrs=attrs)
            else:
                columns = {"v": pa.array([b"x" * n])}
                if attrs:
                    columns["a"] = pa.array([list(attrs.items())], pa.map_(pa.string(), pa.string()))
                at = {"attrs": 1} if attrs else {}
                send_record_batch(p, pa.record_batch(columns), value=0, group="g", stream="s", **at)

        low, high = 1, 5000
        while low + 1 < high:
            middle = (low + high) // 2
            try:
                send(middle)
            except dataproxy.InvalidMessageError:
                high = middle
            else:
                low = middle
        assert low > 4096 - 200 - (600 if attrs else 0)
        report = p.flush(20)
        assert report.ok
        assert max(len(frame) for _, frame in server.frames) <= 4096


def test_a_flush_is_not_kept_by_what_came_after_it() -> None:
    waiting: list[tuple[Peer, bytes]] = []

    def react(peer: Peer, frame: bytes) -> None:
        waiting.append((peer, frame))

    with Scripted(react) as server:
        p = idle(server.target, batch_messages=2, connections=1)
        for _ in range(100):  # many flushes that gave up
            p.send_nowait("s", b"early")
            with pytest.raises(dataproxy.FlushTimeout):
                p.flush(0)
        server.wait_frames(100)
        p.send_nowait("s", b"marker")
        done = threading.Event()
        thread = threading.Thread(target=lambda: (p.flush(30), done.set()))
        thread.start()
        server.wait_frames(101)
        p.send_batch("s", [b"never", b"never"])
        server.wait_frames(102)
        for peer, frame in waiting[:101]:
            peer.send(ack(frame))
        assert done.wait(20)
        thread.join(20)
        assert p.stats().in_flight == 2
        p.close(0)


def test_stats_name_the_connection_and_what_it_did() -> None:
    with Scripted() as server, idle(server.target) as p:
        p.send_batch("s", [b"x"] * 10)
        p.flush(20)
        (connection,) = p.stats().connections
        assert connection.address.endswith(str(server.port))
        frames = (connection.sent_frames, connection.acked_frames, connection.in_flight_frames)
        assert (connection.state, *frames) == ("active", 1, 1, 0)
        assert connection.sent_bytes == len(server.frames[0][1])
        assert p.stats().latency.count == 10
