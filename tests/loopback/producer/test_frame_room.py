"""What is accepted can be sent: every frame fits its limit, whatever travels in it beside the bodies."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dataproxy
from dataproxy import ConfigError, InvalidMessageError, Producer
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.hub import Hub
from tests.native.probe_wire import Server
from tests.support.discovery import refresh
from tests.support.scripted import Peer, Scripted, ack

BODY = b"x" * 100
WIDE = {"k": "v" * 2000}


def sizes(server: Scripted) -> list[int]:
    """Return the size of every frame that came."""
    return [len(frame) for _, frame in server.frames]


@pytest.mark.parametrize("way", ["nowait", "batch"])
@pytest.mark.parametrize("kind", [7, 6, 5, 3, 2])
def test_wide_attributes_take_their_room_from_the_pack(kind, way) -> None:
    with Scripted() as server, Producer(server.target, group_id="g", max_frame_bytes="64KiB", message_type=kind) as p:
        stream = p.stream("s", attrs=WIDE)
        if way == "batch":
            stream.send_batch([BODY] * 5000)
        else:
            for _ in range(5000):
                stream.send_nowait(BODY)
        report = p.flush(30)
        assert (report.delivered, report.failed) == (5000, 0)
        assert 60_000 < max(sizes(server)) <= 65_536


def test_the_managers_limit_holds_from_the_start() -> None:
    with Hub() as hub:
        hub.manager.max_packet_length = 131_072
        with Producer(hub.manager_url, group_id="g", batch_bytes="256KiB") as p:
            stream = p.stream("s", attrs=WIDE)
            for _ in range(5000):
                stream.send_nowait(BODY)
            report = p.flush(30)
            assert (report.delivered, report.failed) == (5000, 0)
            with pytest.raises(InvalidMessageError, match=r"is over the limit of 12[0-9]{4} bytes"):
                stream.send_nowait(b"x" * 131_072)


def test_a_limit_that_the_manager_lowers_at_run_time() -> None:
    with Hub() as hub, Producer(hub.manager_url, group_id="g", linger=60, batch_bytes="64KiB") as p:
        stream, small = p.stream("s"), p.stream("small")
        quick = stream.send_nowait
        for _ in range(300):
            quick(BODY)
        small.send_nowait(BODY)
        hub.manager.max_packet_length = 20_000
        refresh(p._source)
        stats = p.stats()  # one look: the acks are on their way
        assert stats.in_flight + stats.delivered == 300  # larger than a frame may be now: sent as it was
        assert stats.open == 1
        for send in (quick, stream.send_nowait, stream.send, lambda body: stream.send_batch([body])):
            with pytest.raises(InvalidMessageError, match=r"over the limit of 19[0-9]{3} bytes") as caught:
                send(b"x" * 20_000)
            assert caught.value.code == "BODY_TOO_LARGE"
        for _ in range(300):
            quick(BODY)
        stream.send_batch([BODY] * 300)
        hub.manager.max_packet_length = 3000
        refresh(p._source)
        with pytest.raises(InvalidMessageError, match=r"over the limit of 2[0-9]{3} bytes"):
            quick(b"x" * 3000)
        hub.manager.max_packet_length = 5  # nothing would fit: not followed below the smallest frame
        refresh(p._source)
        quick(b"x" * 1000)
        hub.manager.max_packet_length = None
        refresh(p._source)
        quick(b"x" * 100_000)
        report = p.flush(30)
        assert (report.accepted, report.delivered) == (903, 903)
        counts = [r.stream_id for r in hub.records("g", "s")]
        assert len(counts) == 902


def test_rows_that_were_checked_before_the_limit_was_lowered() -> None:
    """A batch waits for room when the limit falls: what no frame has room for any more is refused, not lost."""
    answering = threading.Event()

    def react(peer: Peer, frame: bytes) -> None:
        answering.wait(30)
        peer.send(ack(frame))

    caught: list[InvalidMessageError] = []
    options = {"buffer_bytes": "64KiB", "batch_bytes": "16KiB", "linger": 0, "max_block": 30}
    with Scripted(react) as server, Producer(server.target, group_id="g", **options) as p:

        def send() -> None:
            with pytest.raises(InvalidMessageError, match=r"over the limit of 3\d\d\d bytes \(item 7\)") as error:
                p.send_batch("s", [b"x" * 9000] * 10)
            caught.append(error.value)

        sender = threading.Thread(target=send)
        sender.start()
        while p.stats().accepted < 7:
            sender.join(0.002)
        p._set_frame_limit(4096)
        answering.set()
        sender.join(30)
        assert caught[0].details["accepted"] == 7
        report = p.flush(20)
        assert (report.accepted, report.delivered) == (7, 7)


def test_options_that_the_wire_cannot_hold_are_refused() -> None:
    for options in ({"max_frame_bytes": "256MiB"}, {"max_frame_bytes": (20 << 20) + 1}, {"batch_bytes": "21MiB"}):
        with pytest.raises(ConfigError, match="is too large; allowed is"):
            Producer("tcp://127.0.0.1:1", group_id="g", **options)
    with pytest.raises(ConfigError, match="is too large; allowed is"):
        Hub(max_frame_bytes="21MiB")


def test_the_largest_message_of_the_largest_frame() -> None:
    largest = {"max_frame_bytes": "20MiB"}
    with Hub(queue_bytes="64MiB", **largest) as hub, Producer(hub.target, group_id="g", **largest) as p:
        with pytest.raises(InvalidMessageError, match="over the limit of 2097") as caught:
            p.send("s", bytes(21 << 20))
        p.send("s", b"x" * caught.value.details["limit"]).result(30)
        assert p.flush(30).ok


def test_attributes_that_leave_no_room_are_refused_where_they_are_given() -> None:
    with Scripted() as server, Producer(server.target, group_id="g", max_frame_bytes=2048) as p:
        with pytest.raises(InvalidMessageError, match="leave no room for a body in a frame of 2048 bytes"):
            p.stream("s", attrs=WIDE)
        assert p.report().accepted == 0


NAMES = st.text("ab", min_size=1, max_size=256)
TEXTS = st.one_of(st.none(), st.integers(0, 3000).map(lambda n: {"a": "v" * n}))
WAYS = ("nowait", "send", "producer", "batch", "numpy", "arrow", "rows")


@st.composite
def calls(draw: Any) -> tuple[str, dict[str, Any]]:
    way = draw(st.sampled_from(WAYS))
    return way, {
        "sizes": draw(st.lists(st.integers(1, 6000), min_size=1, max_size=5)),
        "times": draw(st.integers(1, 40)),
        "item": draw(TEXTS),
        "ids": draw(st.booleans()),
        "dt": draw(st.sampled_from([None, 0, 1_700_000_000_123, 4_294_967_295_999])),
        "limit": draw(st.one_of(st.none(), st.integers(0, 70_000))),
    }


def offer(p: Producer, stream: Any, way: str, c: dict[str, Any], kind: int) -> None:
    """Make one call; what it raises has accepted what the report says."""
    own = "i" * 128 if c["ids"] and kind == 7 else None
    item = c["item"] if kind > 3 else None
    plain = {"attrs": item, "dt": c["dt"]}
    bodies = [b"b" * n for n in c["sizes"] * c["times"]]
    if way == "nowait":
        for body in bodies:
            stream.send_nowait(body, message_id=own, **plain)
    elif way == "send":
        for body in bodies:
            stream.send(body, message_id=own, **plain)
    elif way == "producer":
        for body in bodies:
            p.send_nowait("s", body)
    elif way == "batch":
        stream.send_batch(bodies, message_ids=[own] * len(bodies) if own else None, **plain)
    elif way == "numpy":
        stream.send_batch(np.full((c["times"], c["sizes"][0]), 98, np.uint8), **plain)
    elif way == "arrow":
        stream.send_arrow(pa.table({"value": pa.array(bodies)}), **plain)
    else:
        columns: dict[str, Any] = {"v": pa.array(bodies)}
        at: dict[str, int] = {}
        if item:
            columns["a"] = pa.array([list(item.items())] * len(bodies), pa.map_(pa.string(), pa.string()))
            at["attrs"] = len(columns) - 1
        if own:
            columns["i"] = pa.array([own] * len(bodies))
            at["message_id"] = len(columns) - 1
        send_record_batch(p, pa.record_batch(columns), value=0, group="g", stream=stream.stream_id, **at)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from([7, 6, 5, 3, 2]),
    largest=st.integers(2048, 70_000),
    compression=st.sampled_from(["none", "snappy"]),
    exact=st.booleans(),
    name=NAMES,
    frame=TEXTS,
    todo=st.lists(calls(), min_size=1, max_size=4),
)
def test_whatever_is_accepted_by_any_call_is_taken_by_a_server(
    kind, largest, compression, exact, name, frame, todo
) -> None:
    frame = {"f" + k: v for k, v in frame.items()} if frame else None
    exact = exact and kind > 3
    with Scripted() as server:
        options = {"message_type": kind, "max_frame_bytes": largest, "compression": compression, "exact_time": exact}
        with Producer(server.target, group_id="g", max_open_packs=4, **options) as p:
            for way, c in todo:
                if c["limit"] is not None:
                    p._limit_frames(c["limit"])
                with_rows = way in ("producer", "rows")
                try:
                    stream = p.stream(name, attrs=None if with_rows else frame)
                    offer(p, stream, way, c, kind)
                except dataproxy.InvalidMessageError:
                    pass
            report = p.flush(60)
            assert report.accepted == report.delivered, report
        judge = Server()
        assert max(sizes(server), default=0) <= largest
        answers = [judge.serve(f, 0) for _, f in server.frames]
        assert {a["code"] for a in answers} <= {0}
        assert kind in (2, 3) or sum(a["records"] for a in answers) == report.accepted
