"""Every layout of frames that a producer can choose, from the call to the hub's record and in a second reader."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

import dataproxy
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.hub import Hub
from dataproxy.wire.inlong import read_frames
from tests.loopback.test_producer_faults import producer
from tests.support.reference import server as reference
from tests.support.scripted import Scripted, ack, refusal

NOW_MS = 1_700_000_000_000
LAYOUTS: list[dict[str, Any]] = [
    {"message_type": 7},
    {"message_type": 6},
    {"message_type": 6, "compression": "snappy", "compression_min_bytes": 0},
    {"message_type": 5},
    {"message_type": 3},
    {"message_type": 2},
    {"joined_lines": True},
    {"trace_address": "10.1.2.3"},
    {"trace_address": "fd00::1", "ack": "sink"},
]
BODIES = [b"one", b"two", b"three", b"four", b"five", b"six"]


def send_all(p: dataproxy.Producer, *, single: bool) -> None:
    """Send every body, each way of sending in turn."""
    p.send("s", BODIES[0], **({"attrs": {"k": "v"}} if single else {}))
    p.send_nowait("s", BODIES[1])
    p.send_batch("s", BODIES[2:4])
    p.send_arrow("s", pa.table({"value": BODIES[4:6]}))
    assert p.flush(20.0).ok


def is_single(options: dict[str, Any]) -> bool:
    """Tell whether messages have attributes of their own."""
    return options.get("message_type", 7) > 3 and not options.get("joined_lines")


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_a_hub_stores_what_was_sent(options: dict[str, Any]) -> None:
    with Hub() as hub:
        with producer(hub.target, **options) as p:
            send_all(p, single=is_single(options))
        records = list(hub.records("g", "s"))
        bodies = [line for record in records for line in bytes(record.body).split(b"\n")]
        assert sorted(bodies) == sorted(BODIES)
        if is_single(options):
            assert [r.attrs.get("k") for r in records if bytes(r.body) == b"one"] == ["v"]
        if options.get("message_type") == 6:
            assert {r.attrs.get("_") for r in records} == {"", None}
        if "trace_address" in options:
            assert {r.attrs["node1ip"] for r in records} == {options["trace_address"]}
            assert all("rtime1" in r.attrs and "rtime2" in r.attrs for r in records)


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_the_plain_reader_and_the_frame_reader_take_every_frame(options: dict[str, Any]) -> None:
    kind = options.get("message_type", 7)
    with Scripted() as proxy:
        with producer(proxy.target, **{**options, "ack": "source"}) as p:
            send_all(p, single=is_single(options))
        found = []
        for _, frame in proxy.frames:
            outcome = reference.serve(frame, NOW_MS)
            assert (outcome.action, outcome.code) == ("store", 0)
            found += [line for record in outcome.records for line in record.split(b"\n")]
            assert frame[4] & 0x1F in ((5, 6) if kind == 5 else (kind,)), "items with attributes of type 5 travel as 6"
            assert [one.problems for one in read_frames(frame)] == [[]]
    assert sorted(found) == sorted(BODIES)


def test_a_trace_keeps_its_time_through_resends() -> None:
    def refuse(peer: Any, frame: bytes) -> None:
        peer.send(refusal(frame, 114) if len(proxy.frames) < 3 else ack(frame))

    with Scripted(refuse) as proxy, closing(producer(proxy.target, trace_address="10.1.2.3")) as p:
        assert p.send("s", b"x").result(20).attempts == 3
        assert len({frame for _, frame in proxy.frames}) == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"message_type": 5, "joined_lines": True}, "joined_lines needs message_type 7, not 5"),
        ({"message_type": 6, "trace_address": "10.0.0.1"}, "trace_address needs message_type 7, not 6"),
        ({"joined_lines": True, "compression": "snappy"}, "joined_lines is not sent compressed"),
        ({"joined_lines": True, "exact_time": True}, "joined_lines has no attributes of single messages"),
        ({"message_type": 2, "exact_time": True}, "message_type 2 has no attributes of single messages"),
        ({"trace_address": "myhost"}, "trace_address 'myhost' is not an IP address"),
        ({"message_type": 4}, "message_type"),
    ],
)
def test_what_does_not_fit_together_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        dataproxy.Producer("tcp://127.0.0.1:1", group_id="g", **options)


@pytest.mark.parametrize("options", [{"message_type": 2}, {"joined_lines": True}], ids=str)
def test_lines_take_neither_line_feeds_nor_attributes_nor_ids(options: dict[str, Any]) -> None:
    with Scripted() as proxy, closing(producer(proxy.target, **options)) as p:
        for arguments in ({"body": b"a\nb"}, {"body": b"a", "attrs": {"k": "v"}}, {"body": b"a", "message_id": "i"}):
            with pytest.raises(InvalidMessageError):
                p.send("s", **arguments)
        assert p.close().accepted == 0
