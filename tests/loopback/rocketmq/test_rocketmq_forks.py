"""Callbacks that fork: the child ends with its callback, and has no part in what is the parent's."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pytest

from dataproxy.rocketmq import Producer, PushConsumer, TransactionProducer
from tests.support.forking import Forks
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

WAYS = pytest.mark.parametrize(("how", "code"), [("return", 0), ("raise", 1), ("exit", 3)])


def test_what_such_a_child_has_printed_is_not_lost() -> None:
    forks = Forks("return")
    printed, into = os.pipe()

    def listener(_messages: Any) -> None:
        forks.fork()
        if not forks.child:
            sys.stdout = os.fdopen(into, "w")  # of the child alone
            print("printed")

    with RocketServer({"t": 1}) as server:
        server.put("t", 0, b"0")
        with PushConsumer(server.target, "g", "t", listener, begin="first", threads=1):
            assert forks.ended() == 0
    os.close(into)
    with os.fdopen(printed) as found:
        assert found.read() == "printed\n"


@pytest.mark.parametrize("orderly", [False, True])
@WAYS
def test_a_child_that_a_listener_forks_ends_with_it(how: str, code: int, orderly: bool) -> None:
    forks = Forks(how)
    calls, log = os.pipe()

    def listener(messages: Any) -> None:
        os.write(log, messages[0].body)
        if messages[0].body == b"0":
            forks.fork()

    with RocketServer({"t": 1}) as server:
        for n in range(3):
            server.put("t", 0, b"%d" % n)
        with PushConsumer(server.target, "g", "t", listener, begin="first", orderly=orderly, threads=1) as consumer:
            assert forks.ended() == code
            assert eventually(lambda: consumer.counts().done == 3)
    assert os.read(calls, 99) == b"012", "the child has called the listener with nothing"
    os.close(calls)
    os.close(log)


@WAYS
def test_a_child_that_a_result_forks_reads_no_answers_of_the_parent(how: str, code: int) -> None:
    forks = Forks(how)
    with RocketServer({"t": 1}) as server, Producer(server.target, "p") as producer:
        producer.send("t", b"first").result(SECONDS)
        added = threading.Event()  # a callback that came after the answer would be called, and fork, here
        stored = 0, {"msgId": "A" * 32, "queueId": 0, "queueOffset": 0}, b""
        server.on[310] = lambda *_: stored if added.wait(SECONDS) else None
        producer.send("t", b"x").add_done_callback(lambda _: forks.fork())
        added.set()
        assert forks.ended() == code
        for _ in range(20):
            producer.send("t", b"y")
        assert producer.flush(SECONDS).duplicates_possible == 0


def test_a_child_that_a_check_forks_says_nothing_of_the_transaction() -> None:
    forks = Forks("return")

    def check(_message: object) -> str:
        forks.fork()
        return "commit"

    with RocketServer({"t": 1}) as server, TransactionProducer(server.target, "p", check=check) as producer:
        producer.send_in_transaction("t", b"x", lambda _: "unknown")
        [ended] = server.wait(lambda: server.requests(37))
        assert ended
        fields: dict[str, object] = {
            "tranStateTableOffset": 0,
            "commitLogOffset": 0,
            "msgId": "m",
            "transactionId": "m",
        }
        server.clients[-1].ask(39, fields, server.store["t", 0][0], one_way=True)
        assert forks.ended() == 0
        server.wait(lambda: len(server.requests(37)) > 1)
        assert len(server.requests(37)) == 2
