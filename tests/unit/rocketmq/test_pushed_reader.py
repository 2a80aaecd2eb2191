"""One queue that is pushed: sessions, gaps, and when it acknowledges."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dataproxy._core.remoting.messages import read_messages
from dataproxy.errors import ClosedError
from dataproxy.rocketmq.group.backlog import Chunk
from dataproxy.rocketmq.group.pushed import PushedReader, serve_pushes
from dataproxy.rocketmq.group.reader import Bounds
from dataproxy.wire.rocketmq.bodies import Subscription
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import Pushed, header_fields
from dataproxy.wire.rocketmq.messages import StoredMessage
from dataproxy.wire.rocketmq.queues import Queue

PLACE = Queue("b", 3, "T")


class Link:
    def __init__(self) -> None:
        self.told: list[tuple[int, dict[str, str]]] = []
        self.closed = False

    def call(self, request: Any, code: int, fields: dict[str, str], body: bytes) -> None:
        if self.closed:
            raise ClosedError("it was closed")
        assert request is None and code == Code.UPDATE_CONSUMER_OFFSET
        self.told.append((int(fields["queueId"]), int(fields["commitOffset"])))


class Sink:
    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.size = 32

    def _chunk_size(self) -> int:
        return self.size

    def _take(self, _reader: Any, chunks: list[Chunk]) -> None:
        self.chunks += chunks


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def reader(link: Link, sink: Sink) -> PushedReader:
    connections = SimpleNamespace(get=lambda _address: link, push=lambda _link: None)
    routes = SimpleNamespace(address=lambda _broker: "there")
    client: Any = SimpleNamespace(connections=connections, routes=routes)
    return PushedReader(client, "g", PLACE, Subscription("T"), 5, bounds=Bounds(1, 1, 1), sink=sink, commits=True)


def frame(begin: int, following: int, *, session: int = 1, end: int = 1000) -> Pushed:
    return Pushed(
        queue_offset=begin, queue_id=3, topic="T", consumer_group="g", session=session, begin_offset=begin,
        next_offset=following, max_offset=end,
    )  # fmt: skip


def push(reader: PushedReader, begin: int, n: int, **more: int) -> bool:
    stored = b"".join(StoredMessage("T", 3, b"m", queue_offset=begin + i).write() for i in range(n))
    return reader.take(frame(begin, begin + n, **more), read_messages(stored, "b")[0])


def test_frames_of_a_session_follow_each_other(reader: PushedReader, sink: Sink) -> None:
    assert push(reader, 5, 3) and push(reader, 8, 2, end=14)
    assert [[one.offset for one in chunk.messages] for chunk in sink.chunks] == [[5, 6, 7], [8, 9]]
    assert (reader.backlog.next, reader.lagging) == (10, 4)
    assert not push(reader, 12, 1) and not push(reader, 8, 2)
    assert reader.backlog.next == 10 and len(sink.chunks) == 2


@pytest.mark.parametrize("begin", [0, 5, 6, 900])
def test_another_session_begins_where_it_says_and_what_is_out_counts_no_more(
    reader: PushedReader, link: Link, sink: Sink, begin: int
) -> None:
    push(reader, 5, 3)
    assert push(reader, begin, 2, session=2)
    reader.finish(sink.chunks[0])
    assert link.told == [] and reader.backlog.done == begin
    reader.finish(sink.chunks[1])
    assert link.told == [(3, begin + 2)]


def test_much_that_is_done_is_acknowledged_and_so_is_all_that_came(
    reader: PushedReader, link: Link, sink: Sink
) -> None:
    sink.size = 10
    push(reader, 5, 100)
    for chunk in sink.chunks[1:]:
        reader.finish(chunk)
    assert link.told == []
    reader.finish(sink.chunks[0])
    assert link.told == [(3, 105)]
    push(reader, 105, 100)
    for chunk in sink.chunks[10:17]:
        reader.finish(chunk)
    assert link.told == [(3, 105), (3, 175)]
    reader.report()
    reader.finish(sink.chunks[17])
    reader.report()
    assert link.told[2:] == [(3, 185)]


def test_a_frame_with_nothing_that_is_wanted_moves_it_on(reader: PushedReader, sink: Sink) -> None:
    assert reader.take(frame(5, 90), []) and sink.chunks == [] and reader.backlog.done == 90
    assert push(reader, 90, 1)


def test_a_queue_that_was_given_back_takes_and_tells_nothing(reader: PushedReader, link: Link, sink: Sink) -> None:
    push(reader, 5, 3)
    reader.drop()
    assert push(reader, 8, 1) and len(sink.chunks) == 1
    reader.finish(sink.chunks[0])
    reader.report()
    assert link.told == []


def test_a_connection_that_has_ended_is_not_told(reader: PushedReader, link: Link, sink: Sink) -> None:
    push(reader, 5, 1)
    link.closed = True
    reader.finish(sink.chunks[0])
    assert link.told == [] and reader.backlog.idle


def test_nobody_seeks_or_pulls(reader: PushedReader) -> None:
    push(reader, 5, 3)
    reader.seek(0)
    reader.pull()
    assert reader.backlog.next == 8


# --- requests of a hub


class Asked:
    """A member of a group, and what a hub's requests do to its connection."""

    def __init__(self, reader: PushedReader) -> None:
        self.dropped: list[str] = []
        self.handlers: dict[int, Any] = {}
        self.connections = SimpleNamespace(drop=lambda _address, error: self.dropped.append(error.message))
        self.routes = SimpleNamespace(brokers=lambda: {"b": {0: "there"}})
        serve_pushes(self, SimpleNamespace(group="g", readers={PLACE: reader}))  # type: ignore[arg-type]

    def push(self, header: Pushed, body: bytes = b"", address: str = "there") -> None:
        incoming = SimpleNamespace(fields=header_fields(header), body=body)
        self.handlers[Code.SNODE_PUSH_MESSAGE](address, None, incoming)


def test_a_frame_goes_to_the_queue_that_it_names(reader: PushedReader, sink: Sink) -> None:
    asked = Asked(reader)
    asked.push(frame(5, 6), StoredMessage("T", 3, b"m", queue_offset=5).write())
    assert [one.body for one in sink.chunks[0].messages] == [b"m"]


def test_what_is_pushed_for_others_is_left_aside(reader: PushedReader, sink: Sink) -> None:
    asked = Asked(reader)
    stored = StoredMessage("T", 3, b"m", queue_offset=5).write()
    header = frame(5, 6)
    for other, address in (
        (msgspec.structs.replace(header, consumer_group="h"), "there"),
        (msgspec.structs.replace(header, queue_id=4), "there"),
        (header, "elsewhere"),
    ):
        asked.push(other, stored, address)
    assert sink.chunks == [] and asked.dropped == []


def test_a_gap_and_bytes_that_are_no_messages_end_the_connection(reader: PushedReader) -> None:
    asked = Asked(reader)
    asked.push(frame(5, 6))
    asked.push(frame(9, 10))
    asked.push(frame(6, 7), b"no message")
    assert "a frame from offset 9 was pushed; expected 6" in asked.dropped[0] and len(asked.dropped) == 2


def test_a_failure_of_the_client_ends_the_connection_so_that_all_comes_again(
    reader: PushedReader, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(reader)

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(sink, "_take", fail)
    with pytest.raises(MemoryError):
        asked.push(frame(5, 6), StoredMessage("T", 3, b"m", queue_offset=5).write())
    assert asked.dropped == ["there: what was pushed could not be taken: MemoryError"]


def test_a_pause_is_answered_with_what_is_done_for_an_acknowledgement_may_be_lost(
    reader: PushedReader, link: Link, sink: Sink
) -> None:
    asked = Asked(reader)
    fields = {"consumerGroup": "g", "topic": "T", "queueId": "3", "state": "paused"}
    asked.handlers[Code.PUSH_STATE]("there", None, SimpleNamespace(fields=fields))
    assert link.told == []
    push(reader, 5, 3)
    reader.finish(sink.chunks[0])
    asked.handlers[Code.PUSH_STATE]("there", None, SimpleNamespace(fields=fields))
    asked.handlers[Code.PUSH_STATE]("there", None, SimpleNamespace(fields={**fields, "state": "resumed"}))
    assert link.told == [(3, 8), (3, 8)]
    reader.drop()
    asked.handlers[Code.PUSH_STATE]("there", None, SimpleNamespace(fields=fields))
    assert link.told == [(3, 8), (3, 8)]


def test_what_a_hub_says_of_a_session_is_in_the_log(reader: PushedReader, caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked(reader)
    fields = {"consumerGroup": "g", "topic": "T", "queueId": "3", "state": "paused", "messages": "7", "bytes": "70"}
    with caplog.at_level(logging.WARNING):
        asked.handlers[Code.PUSH_STATE]("there", None, SimpleNamespace(fields=fields))
        asked.handlers[Code.PUSH_STATE]("there", None, SimpleNamespace(fields={}))
    assert "T 3 to the group g is paused: 7 messages of 70 bytes" in caplog.text
    assert "there tells of a push: the field 'consumerGroup'" in caplog.text
