"""The listener of the hub's RocketMQ port, played: calls are put in, answers and requests come out, logs stay."""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from dataproxy.hub.rocketmq.service import Service, Settings
from dataproxy.hub.rocketmq.topics.remoting import ANSWER, CLOSED, REQUEST, STORED
from dataproxy.wire.rocketmq.bodies import (
    ConsumeFrom,
    ConsumerData,
    ConsumeType,
    Heartbeat,
    MessageModel,
    ProducerData,
    Subscription,
)  # fmt: skip
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.messages import Host, StoredMessage

__all__ = ["PlayedCall", "PlayedHub", "PlayedRemoting", "PlayedStore"]

LOCAL = "127.0.0.1:10911"


@dataclass
class PlayedCall:
    remoting: Any
    code: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    connection: int = 1
    flag: int = 0
    opaque: int = 0
    version: int = 409
    language: str = "JAVA"
    remark: str = ""
    kind: int = REQUEST
    peer: str = "127.0.0.1:50001"
    local: str = LOCAL
    token: int = 0
    places: Any = ()
    answers: list[tuple[int, dict | None, str, bytes]] = field(default_factory=list)
    waits: list[tuple[str, int, int, int]] = field(default_factory=list)

    def answer(self, code, fields=None, remark="", body=b""):
        assert not self.answers, f"the request {self.code} is answered twice"
        for text in (remark, *(fields or {}), *(fields or {}).values()):
            text.encode()  # as the listener does, which raises
        if not self.flag & 2:
            self.answers.append((int(code), fields, remark, body))

    def wait(self, topic, queue, offset, until_us):
        self.waits.append((topic, queue, offset, until_us))

    @property
    def answered(self):
        return self.answers[0]


@dataclass
class PlayedStore:
    """What survives a hub: the logs, and where groups are."""

    logs: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    firsts: dict[tuple[str, int], int] = field(default_factory=dict)
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)


class PlayedRemoting:
    """``wall``: a function that returns the time of day in ms, for messages that are stored."""

    def __init__(self, store: PlayedStore, wall) -> None:
        self.store, self._wall = store, wall
        self.calls: deque[PlayedCall] = deque()
        self.sent: list[tuple[int, int, int, bool, dict, bytes]] = []
        self.closed: list[int] = []
        self.cut: list[int] = []
        self.followers = [0, 0, 0, 0]
        self.heard: dict[tuple[str, int], int] = {}
        self.topics: dict[str, tuple[int, int, int]] = {}
        self.subscribed: dict[tuple[int, str, str], tuple] = {}
        self.handed: dict[str, bool] = {}
        self.pulled: list[tuple[int, str, str, int, int]] = []
        self.silent_rows: list[tuple[int, str, str, int]] = []
        self.stopped = False
        self.refuse = 0  # the status of what is stored from now on
        self.waiting: list[tuple[int, list]] | None = None  # a list: appends wait there until `store_now`

    # --- for tests

    def ask(self, code, body=b"", *, connection=1, bits=0, **fields) -> PlayedCall:
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in fields.items()}
        call = PlayedCall(self, int(code), texts, body, connection, bits, len(self.calls))
        self.calls.append(call)
        return call

    def end(self, connection: int) -> None:
        self.calls.append(PlayedCall(self, connection=connection, kind=CLOSED))

    def answer_to(self, connection: int, opaque: int, code=0, body=b"", remark="") -> None:
        self.calls.append(PlayedCall(self, code, {}, body, connection, 1, opaque, remark=remark, kind=ANSWER))

    def messages(self, topic: str, queue: int = 0) -> list[StoredMessage]:
        return [StoredMessage.read(one) for one in self.store.logs.get((topic, queue), [])]

    def store_now(self) -> None:
        waiting, self.waiting = self.waiting, None
        for token, messages in waiting:
            self.append(token, messages)

    # --- what the thread calls

    def take(self, until_us):
        return self.calls.popleft() if self.calls else None

    def wake(self):
        pass

    def stop(self):
        self.stopped = True

    def stats(self):
        return {}

    def send(self, connection, code, opaque, oneway, fields, body):
        self.sent.append((connection, int(code), opaque, oneway, dict(fields or {}), body))

    def close(self, connection, at_once=False):
        (self.cut if at_once else self.closed).append(connection)

    def follow(self, topic, queue):
        bucket = zlib.crc32(f"{topic}/{queue}".encode()) % 4  # few: several queues share one
        self.followers[bucket] += 1
        return bucket

    def unfollow(self, bucket):
        self.followers[bucket] -= 1
        assert self.followers[bucket] >= 0

    def news(self):
        found = []
        for (topic, queue), log in self.store.logs.items():
            bucket = zlib.crc32(f"{topic}/{queue}".encode()) % 4
            if self.followers[bucket] and self.heard.get((topic, queue), 0) != len(log):
                self.heard[topic, queue] = len(log)
                found.append(bucket)
        return found

    def append(self, token, messages):
        if self.waiting is not None:
            self.waiting.append((token, messages))
            return
        places = []
        for topic, queue, data in messages:
            if self.refuse:
                places.append((self.refuse, 0, 0))
                continue
            log = self.store.logs.setdefault((topic, queue), [])
            offset = len(log) + self.store.firsts.get((topic, queue), 0)
            handle = self.handle(topic, queue, offset)
            message = StoredMessage.read(data)
            assert (message.topic, message.queue) == (topic, queue)
            values = {**{name: getattr(message, name) for name in message.__slots__}, "queue_offset": offset,
                      "handle": handle, "stored_ms": self._wall(), "store": Host("127.0.0.1", 10911)}  # fmt: skip
            log.append(StoredMessage(**values).write())
            places.append((0, offset, handle))
        self.calls.append(PlayedCall(self, kind=STORED, token=token, places=places))

    def read(self, topic, queue, offset, most, most_bytes=0, local=""):
        log, first = self.store.logs.get((topic, queue), []), self.store.firsts.get((topic, queue), 0)
        begin = max(offset - first, 0)
        return [(first + i, log[i]) for i in range(begin, min(begin + most, len(log)))]

    def handle(self, topic, queue, offset):
        return list(self.store.logs).index((topic, queue)) << 39 | offset

    def place(self, handle):
        logs = list(self.store.logs)
        return (*logs[handle >> 39], handle & (1 << 39) - 1) if handle >> 39 < len(logs) else None

    def extent(self, topic, queue):
        first = self.store.firsts.get((topic, queue), 0)
        return first, first + len(self.store.logs.get((topic, queue), []))

    def commit(self, group, topic, queue, offset):
        self.store.offsets[group, topic, queue] = offset
        return True

    def create(self, group, topic, queue, offset):
        return self.store.offsets.setdefault((group, topic, queue), offset)

    def committed(self, group, topic, queue):
        return self.store.offsets.get((group, topic, queue), -1)

    def offsets(self):
        return [(*key, offset) for key, offset in self.store.offsets.items()]

    def commits(self):
        found, self.pulled = self.pulled, []
        return found

    def subscribe(self, connection, group, topic, version, tags, sql=False):
        self.subscribed[connection, group, topic] = (version, tags, sql)

    def unsubscribe(self, connection, group=None, topic=None):
        for key in list(self.subscribed):
            if key[0] == connection and group in (None, key[1]) and topic in (None, key[2]):
                del self.subscribed[key]

    def silent(self, before_us):
        return self.silent_rows

    def hand_over(self, group, on):
        self.handed[group] = on

    def set_topic(self, name, reads, writes, perm):
        self.topics[name] = (reads, writes, perm)

    def drop_topic(self, name):
        self.topics.pop(name, None)

    # --- the store's view

    def logs(self, topic=None):
        return [(name, queue, *self.extent(name, queue), 0, 0, 0) for name, queue in self.store.logs]


class PlayedHub:
    """A service on a played listener and a played clock; `kill` begins another one on the same store."""

    def __init__(self, **settings: Any) -> None:
        self.store, self.settings = PlayedStore(), Settings(**settings)
        self.at_us, self.wall_ms = 1_000_000_000, 1_700_000_000_000
        self.kill()

    def kill(self) -> None:
        """Lose what is in memory."""
        self.remoting = PlayedRemoting(self.store, lambda: self.wall_ms)
        self.service = Service(self, self.remoting, self.remoting, self.settings, lambda: self.wall_ms)
        self.settle()

    def clock_us(self) -> int:
        return self.at_us

    def settle(self) -> None:
        """Let the thread work until nothing is left to do now."""
        self.service.round()
        while self._has_work():
            self.service.round()

    def _has_work(self) -> bool:
        first = min(self.service.pushes.next_tick, self.service.queries.next_tick)
        return bool(self.remoting.calls) or first <= self.service.now

    def pass_time(self, seconds: float, steps: int = 1) -> None:
        for _ in range(steps):
            self.at_us += int(seconds / steps * 1_000_000)
            self.wall_ms += int(seconds / steps * 1000)
            self.settle()

    def ask(self, code, body=b"", **more) -> PlayedCall:
        """Ask, and return the call with what it was answered."""
        call = self.remoting.ask(code, body, **more)
        self.settle()
        return call

    def send(self, topic: str, body: bytes = b"m", *, queue: int = 0, properties=(), connection=1, times=0, **more):
        """Send a message as a client of Java does, with the names of one letter."""
        text = "\x02".join(f"{name}\x01{value}" for name, value in dict(properties).items())
        fields = {"a": "producers", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": self.wall_ms, "h": 0,
                  "i": text, "j": times, "k": False, "m": False, **more}  # fmt: skip
        return self.ask(Code.SEND_MESSAGE_V2, body, connection=connection, **fields)

    def beat(self, group: str, topic: str = "T", expression: str = "*", *, kind: str = "TAG", connection=1,
             version: int = 1, producers=(), model: str = "CLUSTERING") -> PlayedCall:  # fmt: skip
        """Send the heartbeat of a client with one consumer group, and some of producers."""
        subscription = Subscription(topic, expression, sub_version=version, expression_type=kind)
        consumer = ConsumerData(group, ConsumeType.PUSH, MessageModel(model), ConsumeFrom.FIRST, (subscription,))
        found = tuple(ProducerData(one) for one in producers)
        body = Heartbeat(f"127.0.0.1@{connection}", found, (consumer,) if group else ()).write()
        return self.ask(Code.HEART_BEAT, body, connection=connection)

    def beat_push(self, connection: int, groups: dict[str, dict[str, list[int]]], *, client: str = "", producers=(),
                  model: str = "CLUSTERING", where=ConsumeFrom.FIRST, expression: str = "*", kind: str = "TAG",
                  begins: dict[int, int] | None = None, pulls: bool = False, version=1) -> PlayedCall:  # fmt: skip
        """Send the heartbeat of a client to which the hub pushes: of each group its topics and their queues."""
        way = ConsumeType.PUSH if pulls else ConsumeType.SERVER_PUSH
        more = {} if begins is None else {"queue_offset_table": begins}
        consumers = tuple(
            ConsumerData(group, way, MessageModel(model), where, tuple(
                Subscription(topic, expression, sub_version=version, expression_type=kind, queue_id_set=tuple(queues),
                             **more)
                for topic, queues in topics.items()
            ))
            for group, topics in groups.items()
        )  # fmt: skip
        body = Heartbeat(client or f"c{connection}", tuple(map(ProducerData, producers)), consumers).write()
        return self.ask(Code.HEART_BEAT, body, connection=connection)

    def acknowledge(self, connection: int, offset: int, queue: int = 0, *, group: str = "g", topic: str = "T"):
        fields = {"consumerGroup": group, "topic": topic, "queueId": queue, "commitOffset": offset}
        return self.ask(Code.UPDATE_CONSUMER_OFFSET, connection=connection, **fields)

    def frames(self, connection: int, group: str = "g") -> list[tuple[dict[str, str], list[StoredMessage]]]:
        """Return what was pushed to a connection since the last call: fields and messages of each frame."""
        found, left = [], []
        for one in self.remoting.sent:
            to, code, _, _, fields, body = one
            if (to, code, fields.get("consumerGroup")) == (connection, 352, group):
                found.append((fields, list(_split(body))))
            else:
                left.append(one)
        self.remoting.sent = left
        return found

    def got(self, connection: int, group: str = "g") -> list[bytes]:
        """Return the bodies of what was pushed to a connection since the last call."""
        return [one.body for _, messages in self.frames(connection, group) for one in messages]

    def told(self, code: int) -> list[tuple[int, dict[str, str]]]:
        """Return what was told by a code since the last call: connection and fields."""
        found = [(one[0], one[4]) for one in self.remoting.sent if one[1] == code]
        self.remoting.sent = [one for one in self.remoting.sent if one[1] != code]
        return found

    def messages(self, topic: str, queue: int = 0) -> list[StoredMessage]:
        return self.remoting.messages(topic, queue)

    def bodies(self, topic: str, queue: int = 0) -> list[bytes]:
        return [one.body for one in self.messages(topic, queue)]


def _split(data: bytes):
    while data:
        size = int.from_bytes(data[:4])
        yield StoredMessage.read(data[:size])
        data = data[size:]
