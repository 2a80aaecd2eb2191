"""Listeners that fork: the child ends with its listener, and has no part in what is the parent's."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import pytest

from dataproxy.rocketmq import PushConsumer
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("how", ["return", "raise", "exit"])
def test_a_child_that_a_listener_forks_ends_with_it(how: str, orderly: bool) -> None:
    children: list[int] = []
    calls, log = os.pipe()
    over = threading.Event()

    def listener(messages: Any) -> None:
        os.write(log, messages[0].body)
        if messages[0].body != b"0":
            return
        child = os.fork()
        if child:
            children.append(child)
            assert over.wait(SECONDS)
        elif how == "raise":
            raise ValueError("in the child")
        elif how == "exit":
            sys.exit(0)

    with RocketServer({"t": 1}) as server:
        for n in range(3):
            server.put("t", 0, b"%d" % n)
        with PushConsumer(server.target, "g", "t", listener, begin="first", orderly=orderly, threads=1) as consumer:
            try:
                assert eventually(lambda: children)
                ended = eventually(lambda: os.waitpid(children[0], os.WNOHANG)[0])
                if not ended:
                    os.kill(children[0], signal.SIGKILL)
                    os.waitpid(children[0], 0)
                assert ended
            finally:
                over.set()
            assert eventually(lambda: consumer.counts().done == 3)
    assert os.read(calls, 99) == b"012", "the child has called the listener with nothing"
    os.close(calls)
    os.close(log)
