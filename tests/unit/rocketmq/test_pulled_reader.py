"""One queue that is pulled: when it asks again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataproxy.rocketmq.group.reader import Bounds, QueueReader
from dataproxy.wire.rocketmq.bodies import Subscription
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.queues import Queue


class Network:
    """One connection, and a clock that stands still: what is put off stays so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.put_off: list[float] = []

    def pull(self, request: Any, group: bytes, topic: bytes, queue: int, offset: int, **_more: Any) -> None:
        request._until = 0.0
        self.asked.append(offset)

    def later(self, seconds: float, _body: Callable[[], None]) -> None:
        self.put_off.append(seconds)

    def client(self) -> Any:
        connections = SimpleNamespace(
            get=lambda _address: self, push=lambda _link: None, watch=lambda _request, _seconds: None,
            look_by=lambda _until: None, later=self.later,
        )  # fmt: skip
        return SimpleNamespace(connections=connections, routes=SimpleNamespace(address=lambda _broker: "there"))


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def reader(network: Network) -> QueueReader:
    return made(network, Subscription("T"))


def made(network: Network, subscription: Subscription) -> QueueReader:
    sink: Any = SimpleNamespace(_chunk_size=lambda: 32, _take=lambda _reader, _chunks: None)
    place = Queue("b", 3, "T")
    return QueueReader(network.client(), "g", place, subscription, 5, bounds=Bounds(9, 9, 9), sink=sink, commits=False)


def moved(reader: QueueReader, to: int) -> None:
    answer: Any = SimpleNamespace(
        placed=True, code=Answer.PULL_OFFSET_MOVED, broken=0, messages=[], next_offset=to, min_offset=to, max_offset=99
    )
    reader.answered(answer, reader.backlog.number)


def test_a_reader_that_was_overtaken_asks_at_once_before_it_is_again(
    reader: QueueReader, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that drops its oldest messages all the time has dropped more of them after each pause."""
    caplog.set_level(logging.WARNING)
    reader.pull()
    moved(reader, 20)
    moved(reader, 40)
    assert network.asked == [5, 20, 40] and network.put_off == []
    assert len(caplog.records) == 1 and "offset 5 is not there, going on at 20" in caplog.text


def test_a_reader_that_is_sent_back_waits(reader: QueueReader, network: Network) -> None:
    """Servers that disagree about a queue send it to and fro."""
    reader.pull()
    moved(reader, 2)
    assert network.asked == [5] and network.put_off == [1.0]
    moved(reader, reader.backlog.next)
    assert network.asked == [5] and network.put_off == [1.0, 1.0]


@pytest.mark.parametrize(
    ("kind", "code", "remark", "said"),
    [
        ("SQL92", Answer.SUBSCRIPTION_PARSE_FAILED, "at 2", "topic 'T', expression 'n>': at 2"),
        ("SQL92", Answer.SYSTEM_ERROR, "no SQL92", "topic 'T', expression 'n>': no SQL92"),
        ("SQL92", Answer.SUBSCRIPTION_PARSE_FAILED, "", "expression 'n>': code 23 (SUBSCRIPTION_PARSE_FAILED)"),
        ("SQL92", Answer.NO_PERMISSION, "no", ""),
        ("TAG", Answer.SYSTEM_ERROR, "the disk is full", ""),
    ],
)
def test_what_a_broker_says_against_an_expression_is_kept_until_it_answers(
    network: Network, kind: str, code: int, remark: str, said: str
) -> None:
    reader = made(network, Subscription("T", "n>", expression_type=kind))
    reader._client.keeper = SimpleNamespace(soon=lambda _body: None)
    reader._client.refresh = None
    reader.pull()
    refusal: Any = SimpleNamespace(placed=False, code=code, remark=remark)
    reader.answered(refusal, reader.backlog.number)
    assert reader.refused.endswith(said) and bool(reader.refused) == bool(said)
    moved(reader, 20)
    assert reader.refused == ""
