"""A hub's port of RocketMQ with the test in the place of the hub's thread, and raw clients of it."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from typing import Any, Final, Self

from dataproxy._core.server.core import HubCore
from dataproxy._core.server.rocketmq.core import REQUEST, RemotingCall, RemotingCore
from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.tubemq.callcore import CallsCore
from dataproxy._core.server.tubemq.core import RegistrationsCore
from tests.native import probe_rocketmq as wire
from tests.support.waiting import SECONDS

__all__ = ["JSON", "RMQ", "Port", "Remote", "batch", "fields", "messages", "one_stored", "properties"]

JSON: Final = 0
RMQ: Final = 1
_US: Final = 1_000_000
_SEND: Final = {
    "producerGroup": b"pg", "defaultTopic": b"TBW102", "defaultTopicQueueNums": 4, "queueId": 0, "sysFlag": 0,
    "bornTimestamp": 1700000000000, "flag": 0, "properties": b"", "reconsumeTimes": 0, "unitMode": False,
    "maxReconsumeTimes": -1, "batch": False, "bname": b"",
}  # fmt: skip
_PULL: Final = {
    "consumerGroup": b"g", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0,
    "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": b"*", "expressionType": b"", "bname": b"",
}  # fmt: skip


def fields(frame: bytes) -> dict[str, str]:
    """Return the fields of a frame's header."""
    return {name.decode(): value.decode() for name, value in wire.read(frame)["fields"] or ()}


def messages(frame: bytes) -> list[dict[str, Any]]:
    """Return the messages of a pull's answer."""
    return wire.read_stored_messages(wire.take("pulled", frame)["messages"])


def properties(**pairs: str) -> bytes:
    """Return properties as a text."""
    return "\x02".join(f"{name}\x01{value}" for name, value in pairs.items()).encode()


def batch(*items: tuple[int, bytes, bytes]) -> bytes:
    """Return messages as the body of a batch: flag, body and properties of each."""
    return wire.batch([{"flag": flag, "body": body, "properties": text} for flag, body, text in items])


def one_stored(topic: str = "T", **given: Any) -> bytes:
    """Return a stored message as the hub's thread makes it."""
    return wire.stored({
        "queueId": 0, "flag": 0, "queueOffset": 0, "physicalOffset": 0, "sysFlag": 0, "bornTimestamp": 5,
        "bornHost": (bytes([10, 0, 0, 1]), 99), "storeTimestamp": 0, "storeHost": (bytes(4), 0), "reconsumeTimes": 0,
        "preparedTransactionOffset": 0, "body": b"b", "topic": topic.encode(), "properties": b"", **given,
    })  # fmt: skip


class Remote:
    """One client: a socket, requests and answers as frames."""

    def __init__(self, port: int, form: int = JSON, seconds: float = SECONDS, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=seconds)
        self.form = form
        self._numbers = itertools.count(7)
        self._data = bytearray()
        self.answers: dict[int, bytes] = {}  # that nobody has asked for yet
        self.requests: list[bytes] = []  # of the hub

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def head(self, code: int, flag: int = 0) -> dict[str, Any]:
        """Return the head of a request."""
        return {
            "form": self.form, "code": code, "language": 0, "version": 407, "opaque": next(self._numbers), "flag": flag,
            "remark": b"", "fields": (),
        }  # fmt: skip

    def request(self, code: int, body: bytes = b"", *, oneway: bool = False, **given: str) -> int:
        """Send a request and return its number."""
        head = self.head(code, 2 if oneway else 0)
        pairs = [(name.encode(), value.encode()) for name, value in given.items()]
        self.socket.sendall(wire.write(head | {"fields": pairs, "body": body}))
        return head["opaque"]

    def send_frame(
        self, topic: str, body: bytes, code: int = 310, *, oneway: bool = False, **given: Any
    ) -> tuple[int, bytes]:
        """Return number and frame of a message."""
        head = self.head(code, 2 if oneway else 0)
        return head["opaque"], wire.put("send", head, {**_SEND, "topic": topic.encode(), "body": body, **given})

    def post(self, topic: str, body: bytes, code: int = 310, **given: Any) -> int:
        """Send a message and return the number of the request."""
        number, frame = self.send_frame(topic, body, code, **given)
        self.socket.sendall(frame)
        return number

    def send(self, topic: str, body: bytes, code: int = 310, **given: Any) -> dict[str, Any]:
        """Send a message and return what its answer says."""
        return wire.take("sent", self.answer(self.post(topic, body, code, **given)))

    def ask(self, topic: str, *, oneway: bool = False, **given: Any) -> int:
        """Ask for messages and return the number of the request."""
        head = self.head(11, 2 if oneway else 0)
        self.socket.sendall(wire.put("pull", head, {**_PULL, "topic": topic.encode(), **given}))
        return head["opaque"]

    def pull(self, topic: str, **given: Any) -> dict[str, Any]:
        """Ask for messages and return what the answer says, with ``found``: the messages."""
        frame = self.answer(self.ask(topic, **given))
        pulled = wire.take("pulled", frame)
        return pulled | {"found": wire.read_stored_messages(pulled["messages"])}

    def answer(self, number: int) -> bytes:
        """Return the answer to a request."""
        while number not in self.answers:
            self.receive()
        return self.answers.pop(number)

    def hear(self) -> bytes:
        """Return the next request of the hub."""
        while not self.requests:
            self.receive()
        return self.requests.pop(0)

    def reply(self, request: bytes, code: int = 0, body: bytes = b"", **given: str) -> None:
        """Answer a request of the hub."""
        head = self.head(code, 1) | {"opaque": wire.read(request)["opaque"]}
        pairs = [(name.encode(), value.encode()) for name, value in given.items()]
        self.socket.sendall(wire.write(head | {"fields": pairs, "body": body}))

    def is_closed(self) -> bool:
        """Wait for the end of the stream; False: there is something to read instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def receive(self) -> None:
        """Read what has come."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionError("the hub has closed the connection")
        self._data += part
        while len(self._data) >= 4 and len(self._data) >= 4 + int.from_bytes(self._data[:4]):
            size = 4 + int.from_bytes(self._data[:4])
            frame = bytes(self._data[:size])
            del self._data[:size]
            head = wire.read(frame)
            if head["flag"] & 1:
                assert head["opaque"] not in self.answers
                self.answers[head["opaque"]] = frame
            else:
                self.requests.append(frame)


class Port:
    """Server loops, a store and its committer; calls wait until the test takes them."""

    def __init__(
        self,
        path: str | None = None,
        *,
        threads: int = 1,
        calls: int = 4096,
        tube: CallsCore | None = None,
        **settings: Any,
    ) -> None:
        self.store = StoreCore(path)
        self.remoting = RemotingCore(calls, 32 << 20)
        self.registrations = RegistrationsCore(b"0123456789abcdef", 30_000_000, 1 << 20)
        self.registrations.attach(self.store, 0)
        self.remoting.attach(self.store, self.registrations)
        given = {
            "max_frame": 1 << 20, "max_connections": 1000, "read_idle": 300.0, "reply_bytes": 1 << 20,
            "queue_bytes": 64 << 20, "compat": False, "compress_entries": False, "node_ip": "127.0.0.1",
            "partitions": 4, "topics": (), "rocketmq_port": 0,
        } | settings  # fmt: skip
        self.core = HubCore(
            self.store, host="127.0.0.1", port=0, threads=threads, remoting=self.remoting, calls=tube, **given
        )
        self.core.open()
        if tube is not None:
            self.core.serve_data(self.registrations)
        self.port: int = self.core.ports[self.core.rocketmq]
        self.threads = [threading.Thread(target=self.store.run_committer)]
        self.threads += [threading.Thread(target=self.core.run_loop, args=(i,)) for i in range(threads)]
        for thread in self.threads:
            thread.start()
        self.remotes: list[Remote] = []

    def connect(self, form: int = JSON) -> Remote:
        """Return a client."""
        self.remotes.append(Remote(self.port, form))
        return self.remotes[-1]

    def topic(self, *names: str, queues: int = 4, permission: int = 6) -> None:
        """Let topics exist."""
        for name in names:
            self.remoting.set_topic(name, queues, queues, permission)

    def call(self, kind: int = REQUEST) -> RemotingCall:
        """Return the next call, which is of a kind."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            call = self.remoting.take(time.monotonic_ns() // 1000 + _US)
            if call is not None:
                assert call.kind == kind, (call.kind, call.code)
                return call
        raise TimeoutError("no call has come")

    def has_call(self) -> bool:
        """Tell whether a call waits that nobody has taken; it is lost."""
        return self.remoting.take(0) is not None

    def number(self, remote: Remote) -> int:
        """Return the number of a client's connection, of which the thread knows then."""
        number = remote.request(999)
        call = self.call()
        call.answer(3)
        remote.answer(number)
        return call.connection

    def close(self, grace: float = 5.0) -> None:
        """End everything; calls that are owed an answer get it for ``grace`` seconds."""
        for remote in self.remotes:
            remote.close()
        self.remoting.stop()
        self.core.stop(grace)
        for thread in self.threads[1:]:
            thread.join(SECONDS)
        self.store.stop()
        self.threads[0].join(SECONDS)
        self.core.release()
        self.store.close()
