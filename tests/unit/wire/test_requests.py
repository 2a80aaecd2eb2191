"""Requests written in Python are those of the compiled wire, byte for byte."""

import pytest

from dataproxy.wire.inlong import read_frames
from dataproxy.wire.items import read_items
from dataproxy.wire.requests import BINARY, MESSAGE, calling_heartbeat, heartbeat, marked_frame, wide_heartbeat
from tests.native.probe_wire import Server, Wire

NOW = 1_700_000_000.5
WIRE = Wire()
#: The core's numbers of heartbeats: enum of wire/api.
KINDS = {BINARY: 8, MESSAGE: 1}


@pytest.mark.parametrize("kind", KINDS)
def test_heartbeats_are_the_producers(kind):
    known = {WIRE.heartbeat(number, int(NOW * 1000)) for number in KINDS.values()}
    assert heartbeat(kind, NOW) in known


def test_a_calling_heartbeat_is_answered_like_any():
    plain = Server().serve(heartbeat(MESSAGE, NOW), 0)["reply"]
    assert Server().serve(calling_heartbeat(), 0)["reply"] == plain
    assert calling_heartbeat().endswith(b"\r\n\r\n")


@pytest.mark.parametrize("size", [5, 6, 2048, 65536, 524288])
def test_a_wide_heartbeat_has_its_size_and_is_answered_like_any(size):
    frame = wide_heartbeat(size)
    assert len(frame) == size
    assert WIRE.delimit(frame) == (0, size)
    assert Server().serve(frame, 0)["reply"] == Server().serve(heartbeat(MESSAGE, NOW), 0)["reply"]


def marked(kind, body=b"hello"):
    return marked_frame(kind, "b_app", "s_click", body, mark="0123abcd", sequence=77, now=NOW)


def test_a_binary_frame_is_the_producers():
    body = b"\0\0\0\5hello"
    attrs = b"groupId=b_app&streamId=s_click&doctor=0123abcd"
    assert marked(7) == WIRE.frame(body, attrs, family=7, seq=77, data_time_ms=int(NOW * 1000))


@pytest.mark.parametrize("kind", [7, 5, 3])
def test_a_server_takes_a_marked_frame_and_answers_its_number(kind):
    (frame,) = read_frames(marked(kind), "client")
    assert frame.problems == []
    assert [item.body for item in read_items(frame)] == [b"hello"]
    assert {one.key: one.value for one in frame.attributes}[b"doctor"] == b"0123abcd"
    (answer,) = read_frames(Server().serve(marked(kind), int(NOW * 1000))["reply"], "server")
    assert answer.answer is not None
    assert (answer.answer.code, answer.answer.seq) == (0, 77)
