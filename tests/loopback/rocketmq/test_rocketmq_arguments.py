"""Arguments of wrong types at all public calls of `dataproxy.rocketmq`: each is an error of the package."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pytest

from dataproxy.errors import ConfigError, DataProxyError, InvalidMessageError
from dataproxy.rocketmq import (
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    Queue,
    RetryLater,
    TransactionProducer,
)
from tests.support.rocketserver import RocketServer

WRONG: Final[tuple[Any, ...]] = (None, 5, -1, 1.5, True, "x", "", b"x", [], {}, (), object(), [None], {"a": None},
                                 {None: "a"}, float("nan"), "\ud800", datetime(1, 1, 1),  # noqa: DTZ001 - before year 1
                                 np.array([1, 2]), np.array(["T"]), Message(b"x"), [["T"]])  # fmt: skip


class Clients(NamedTuple):
    """Clients of one server, whose topic T has two queues."""

    server: RocketServer
    producer: Producer
    transactions: TransactionProducer
    reader: PullConsumer
    queue: Queue


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with RocketServer({"T": 2}) as server:
        server.put("T", 0, b"x")
        server.on[320] = lambda *_: (0, {"msgId": "A" * 32, "queueId": 0, "queueOffset": 0}, b"")  # a batch
        with contextlib.ExitStack() as held:
            producer = Producer(server.target, "pg", max_block=0)
            transactions = TransactionProducer(server.target, "tg", lambda _message: "commit")
            for one in (producer, transactions):
                held.callback(one.close)  # and not by `with`, which raises for messages to queues that are not there
            reader = held.enter_context(PullConsumer(server.target, "cg", begin="first"))
            queue = next(one for one in reader.queues("T") if one.queue_id == 0)
            reader.assign({queue: 0})
            yield Clients(server, producer, transactions, reader, queue)


Call = Callable[[Clients, Any], object]
#: Calls by the names of one argument each, which gets all wrong values.
CALLS: Final[dict[str, Call]] = {
    "send topic": lambda c, v: c.producer.send(v, b"x"),
    "send body": lambda c, v: c.producer.send("T", v),
    "send_batch topic": lambda c, v: c.producer.send_batch(v, [b"x"]),
    "send_batch messages": lambda c, v: c.producer.send_batch("T", v),
    "send_batch message": lambda c, v: c.producer.send_batch("T", [v]),
    "send_batch queue": lambda c, v: c.producer.send_batch("T", [b"x"], queue=v),
    "send_oneway topic": lambda c, v: c.producer.send_oneway(v, b"x"),
    "send_oneway body": lambda c, v: c.producer.send_oneway("T", v),
    "producer queues": lambda c, v: c.producer.queues(v),
    "create_topic topic": lambda c, v: c.producer.create_topic(v),
    "create_topic queues": lambda c, v: c.producer.create_topic("T", v),
    "flush": lambda c, v: c.producer.flush(v),
    "result": lambda c, v: c.producer.send("T", b"x").result(v),
    "exception": lambda c, v: c.producer.send("T", b"x").exception(v),
    "add_done_callback": lambda c, v: c.producer.send("T", b"x").add_done_callback(v),
    "execute": lambda c, v: c.transactions.send_in_transaction("T", b"x", v),
    "timeout": lambda c, v: c.transactions.send_in_transaction("T", b"x", lambda _: "commit", timeout=v),
    "pull queues": lambda c, v: c.reader.queues(v),
    "first_offset": lambda c, v: c.reader.first_offset(v),
    "last_offset": lambda c, v: c.reader.last_offset(v),
    "offset_at queue": lambda c, v: c.reader.offset_at(v, 5),
    "offset_at when": lambda c, v: c.reader.offset_at(c.queue, v),
    "assign": lambda c, v: c.reader.assign(v),
    "assign queue": lambda c, v: c.reader.assign({cast("Queue", repr(v)): 0}),
    "assign offset": lambda c, v: c.reader.assign({c.queue: v}),
    "seek queue": lambda c, v: c.reader.seek(v, 0),
    "seek offset": lambda c, v: c.reader.seek(c.queue, v),
    "check": lambda c, v: TransactionProducer(c.server.target, "g", v),
    "delay_level": lambda _, v: RetryLater(v),
}


def with_option(call: str, name: str, clients: Clients, value: Any) -> object:
    return getattr(clients.producer, call)("T", b"x", **{name: value})


def with_field(name: str, clients: Clients, value: Any) -> object:
    return clients.producer.send_batch("T", [Message(b"x")._replace(**{name: value})])


for _name in Message._fields:
    CALLS[f"message {_name}"] = partial(with_field, _name)
for _name in (*Message._fields[1:], "queue"):
    for _call in ("send", "send_oneway"):
        CALLS[f"{_call} {_name}"] = partial(with_option, _call, _name)

MADE: Final[dict[type, dict[str, Any]]] = {
    Producer: {"group": "g"},
    PullConsumer: {"group": "g"},
    PushConsumer: {"group": "g", "topics": "T", "listener": print},
}


def refused(call: Callable[[Any], Any]) -> int:
    """Return how many of the wrong values are refused; others are taken, and none is another exception."""
    count = 0
    for value in WRONG:
        try:
            found = call(value)
        except DataProxyError:
            count += 1
        else:
            if isinstance(found, (Producer, PullConsumer, PushConsumer)):
                found.close()
    return count


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_a_wrong_type_is_an_error_of_the_package(clients: Clients, name: str) -> None:
    assert refused(lambda value: CALLS[name](clients, value)) >= 5, "most of them are wrong for every argument"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in MADE
        for name in inspect.signature(kind).parameters
        if name not in ("orderly", "broadcasting", "push", "auto_commit")  # anything is true or false
    ],
)
def test_an_option_of_a_wrong_type_is_an_error_of_the_package(clients: Clients, kind: Any, name: str) -> None:
    made = {"target": clients.server.target, **MADE[kind]}
    assert refused(lambda value: kind(**{**made, name: value})) >= 5


@pytest.mark.parametrize("value", [None, 5, b"x", "x", Message(b"x"), {"a": b"x"}, bytes, np.array(5)])
def test_what_is_no_batch_is_named_with_the_way_out(clients: Clients, value: Any) -> None:
    with pytest.raises(InvalidMessageError, match=r"messages .* are no batch; give a list of bytes or Message"):
        clients.producer.send_batch("T", value)


@pytest.mark.parametrize("level", [1, None, np.array([0, 0]), "0", 0.0])
def test_a_message_of_a_batch_has_no_delay(clients: Clients, level: Any) -> None:
    with pytest.raises(InvalidMessageError, match="a message of a batch has a delay_level"):
        clients.producer.send_batch("T", [b"a", Message(b"b", delay_level=level)])


def test_a_batch_may_come_from_an_iterator(clients: Clients) -> None:
    delivery = clients.producer.send_batch("T", (body for body in (b"a", Message(b"b"))))
    assert delivery.result(20)


def test_what_is_no_queue_is_named_with_the_way_out(clients: Clients) -> None:
    with pytest.raises(ConfigError, match="'T' is not a queue; `queues` names those of a topic"):
        clients.reader.first_offset("T")  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["send", "send_oneway"])
def test_an_unknown_keyword_is_named_with_its_call(clients: Clients, call: str) -> None:
    with pytest.raises(TypeError, match=rf"Producer\.{call}\(\) got an unexpected keyword argument 'tags'"):
        getattr(clients.producer, call)("T", b"x", tags="a")


@pytest.mark.parametrize("end", [None, 1, [], {}, "perhaps"])
def test_an_end_of_a_transaction_that_is_none_is_a_rollback_with_words(clients: Clients, end: Any) -> None:
    with pytest.raises(ValueError, match=r"execute returned .*; expected 'commit', 'rollback', 'unknown'"):
        clients.transactions.send_in_transaction("T", b"x", lambda _: end)
