"""Brokers of RocketMQ that are said to push, for tests: which queues a member claims at each of them."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

from tests.support.rocketserver import RocketServer

__all__ = ["claimed", "full_port", "pushing"]

_ASKED, _HEARTBEAT = 353, 34


def pushing(server: RocketServer) -> RocketServer:
    """Let a server say that it pushes; it never does."""
    server.on[_ASKED] = lambda _client, _fields, _body: (0, {}, b"")
    return server


def claimed(server: RocketServer, topic: str = "T") -> set[int] | None:
    """Return the queues of a topic that the newest heartbeat claims, None if none came."""
    bodies = [json.loads(body) for _, body in server.requests(_HEARTBEAT)]
    for body in reversed(bodies):
        for group in body.get("consumerDataSet", ()):
            for wanted in group["subscriptionDataSet"]:
                if wanted["topic"] == topic:
                    return set(wanted["queueIdSet"])
    return None


@contextlib.contextmanager
def full_port(port: int = 0) -> Iterator[int]:
    """Listen at a port at which connections are begun, and never made: those that wait to be taken are too many."""
    with contextlib.ExitStack() as held:
        server = held.enter_context(socket.socket())
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen(0)
        place = server.getsockname()
        for _ in range(8):
            one = socket.socket()
            one.settimeout(0.1)
            try:
                one.connect(place)
            except TimeoutError:
                one.close()
                break
            held.enter_context(one)
        yield place[1]
