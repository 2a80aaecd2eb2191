"""A TubeMQ client without an engine: one socket, one call at a time; each message is made and read as the test says."""

from __future__ import annotations

import itertools
import socket
import time
from typing import Any, Self

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Partition, Topic
from tests.native import probe_tubemq as wire

__all__ = ["INDEX", "Connection", "Reader", "RpcError", "Sender", "bodies", "read_all"]

INDEX = 28  # bytes of an offset for each message of a store
MASTER, READ, WRITE = 1, 2, 3
METHODS = {
    "RegisterRequestP2M": (1, MASTER, "RegisterResponseM2P"),
    "HeartRequestP2M": (2, MASTER, "HeartResponseM2P"),
    "CloseRequestP2M": (3, MASTER, "CloseResponseM2P"),
    "RegisterRequestC2M": (4, MASTER, "RegisterResponseM2C"),
    "HeartRequestC2M": (5, MASTER, "HeartResponseM2C"),
    "CloseRequestC2M": (6, MASTER, "CloseResponseM2C"),
    "SendMessageRequestP2B": (13, WRITE, "SendMessageResponseB2P"),
    "RegisterRequestC2B": (15, READ, "RegisterResponseB2C"),
    "HeartBeatRequestC2B": (16, READ, "HeartBeatResponseB2C"),
    "GetMessageRequestC2B": (17, READ, "GetMessageResponseB2C"),
    "CommitOffsetRequestC2B": (18, READ, "CommitOffsetResponseB2C"),
    "RegisterRequestC2MV2": (20, MASTER, "RegisterResponseM2CV2"),
    "HeartRequestC2MV2": (21, MASTER, "HeartResponseM2CV2"),
    "GetPartMetaRequestC2M": (22, MASTER, "GetPartMetaResponseM2C"),
}


class RpcError(Exception):
    """The server answered with an exception."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


class Connection:
    """One connection to a master or a broker."""

    def __init__(self, port: int, seconds: float = 15) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self._stream = wire.Stream()
        self._serials = itertools.count(1)
        self._found: dict[int, bytes] = {}

    def post(self, name: str, **fields: Any) -> int:
        """Send a request and return its number."""
        kind: Any = getattr(messages, name)
        return self._post(name, kind(**fields).SerializeToString())

    def _post(self, name: str, request: bytes) -> int:
        method, service, _ = METHODS[name]
        serial = next(self._serials)
        self._socket.sendall(wire.frame(serial, wire.call(service, 3, method, 10_000, request)))
        return serial

    def post_data(self, name: str, more: bytes = b"", **fields: Any) -> int:
        """Send a request that compiled code writes, and ``more`` behind its fields; texts are bytes."""
        return self._post(name, wire.write(name, fields) + more)

    def answer(self, serial: int, name: str) -> Any:
        """Return the answer to a request.  Raises RpcError for an exception, ConnectionError at the end."""
        kind: Any = getattr(messages, METHODS[name][2])
        return kind.FromString(self._answer(serial))

    def answer_data(self, serial: int, name: str) -> dict[str, Any]:
        """Return the answer to a request as compiled code reads it."""
        return dict(wire.read(METHODS[name][2], self._answer(serial)))

    def _answer(self, serial: int) -> bytes:
        while serial not in self._found:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._found.update(self._stream.push(data))
        found = wire.read_answers(self._found.pop(serial))
        if found["status"]:
            raise RpcError(found["exceptionName"].decode(), found["stackTrace"].decode())
        return bytes(found["data"])

    def ask_data(self, name: str, **fields: Any) -> dict[str, Any]:
        """Send a request that compiled code writes, and return its answer as compiled code reads it."""
        return self.answer_data(self.post_data(name, **fields), name)

    def ask_message(self, name: str, message: Any) -> Any:
        """Send a request that is a message already, and return its answer."""
        return self.answer(self._post(name, message.SerializeToString()), name)

    def ask(self, name: str, **fields: Any) -> Any:
        """Send a request and return its answer."""
        return self.answer(self.post(name, **fields), name)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class Sender:
    """A producer that has registered and knows its topic."""

    def __init__(self, master: Connection, broker: Connection, topic: str) -> None:
        self._broker, self._topic = broker, topic
        self.client = f"127.0.0.1-1-{time.time_ns()}-raw"
        settings = {"appdConfig": {"configId": -2}, "hostName": "127.0.0.1", "clientId": self.client}
        answer = master.ask("RegisterRequestP2M", brokerCheckSum=-1, topicList=[topic], jdkVersion="", **settings)
        assert (answer.success, answer.errCode, answer.errMsg) == (True, 200, "OK!"), answer
        assert 1 in [Broker.read(text).id for text in answer.brokerInfos]
        self._token = answer.authorizedInfo.visitAuthorizedToken
        deadline = time.monotonic() + 60
        while not _topics_of(answer := master.ask("HeartRequestP2M", brokerCheckSum=-1, topicList=[topic], **settings)):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        assert Topic.read(answer.topicInfos[0]).name == topic
        self._master = master

    def send(
        self, partition: int, body: bytes, *, attribute: bytes = b"", checksum: int | None = None, **more: Any
    ) -> Any:
        """Send one message and return the answer."""
        flag, payload = wire.payload(attribute, body)
        return self._broker.ask_data(
            "SendMessageRequestP2B", clientId=self.client.encode(), topicName=self._topic.encode(),
            partitionId=partition, data=payload, flag=flag, sentAddr=0x7F000001,
            checkSum=wire.checksum(payload) if checksum is None else checksum,
            authInfo={"visitAuthorizedToken": self._token, "authAuthorizedToken": b""},
            **{"msgType": b"", "msgTime": b"", **more},
        )  # fmt: skip

    def close(self) -> None:
        """Tell the master."""
        assert self._master.ask("CloseRequestP2M", clientId=self.client).errCode == 200


def _topics_of(answer: Any) -> list[str]:
    """Return the topics that take messages."""
    assert answer.errCode == 200, answer
    return list(answer.topicInfos)


class Reader:
    """A consumer at a broker."""

    def __init__(self, broker: Connection, topic: str, group: str, partition: int = 0) -> None:
        self._broker = broker
        self.client = f"{group}_127.0.0.1-1-{time.time_ns()}-raw"
        self._who: dict[str, Any] = {
            "clientId": self.client,
            "groupName": group,
            "topicName": topic,
            "partitionId": partition,
        }
        self._bytes = {name: value.encode() if isinstance(value, str) else value for name, value in self._who.items()}

    def become(self, client: str, partition: int) -> None:
        """Read for a member that has registered a partition."""
        self.client = client
        self._who |= {"clientId": client, "partitionId": partition}
        self._bytes |= {"clientId": client.encode(), "partitionId": partition}

    def move(self, broker: Connection) -> None:
        """Go on over another connection."""
        self._broker = broker

    def register(self, read_status: int = 0, **more: Any) -> Any:
        """Take the partition."""
        auth = {"visitAuthorizedToken": -2}
        return self._broker.ask(
            "RegisterRequestC2B", opType=31, readStatus=read_status, authInfo=auth, ssdStoreId=-2, qryPriorityId=-2,
            **self._who, **more,
        )  # fmt: skip

    def unregister(self, read_status: int = 1) -> Any:
        """Give the partition back; with ``read_status`` 0 the pending pack is committed."""
        auth = {"visitAuthorizedToken": -2}
        return self._broker.ask("RegisterRequestC2B", opType=32, readStatus=read_status, authInfo=auth, **self._who)

    def fields(self, *, consumed: bool = False, manual: bool = False) -> dict[str, Any]:
        """Return the fields of a request for a pack."""
        return {**self._bytes, "lastPackConsumed": consumed, "manualCommitOffset": manual, "escFlowCtrl": False}

    def heartbeat(self, topic: str = "") -> dict[str, Any]:
        """Return the fields of a heartbeat that names one partition."""
        partition = Partition(Broker(1, "127.0.0.1", 1), topic or self._who["topicName"], self._who["partitionId"])
        auth = {"visitAuthorizedToken": -2}
        who = {name: self._who[name] for name in ("clientId", "groupName")}
        return {**who, "partitionInfo": [str(partition)], "authInfo": auth, "qryPriorityId": -2, "ssdStoreId": -2}

    def get(self, **more: Any) -> dict[str, Any]:
        """Ask for a pack."""
        return self._broker.ask_data("GetMessageRequestC2B", **self.fields(**more))

    def commit(self, consumed: bool = True) -> dict[str, Any]:
        """Confirm the pack, or not."""
        return self._broker.ask_data("CommitOffsetRequestC2B", **self._bytes, lastPackConsumed=consumed)


def bodies(answer: dict[str, Any]) -> list[bytes]:
    """Return the bodies of a pack; every checksum is right."""
    found = []
    for one in answer["messages"]:
        assert wire.checksum(one["payLoadData"]) == one["checkSum"]
        found.append(wire.split(one["flag"], one["payLoadData"])[1])
    return found


def read_all(reader: Reader, n: int) -> list[bytes]:
    """Read and confirm packs until ``n`` messages are there."""
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < n:
        answer = reader.get()
        if answer["errCode"] == 200:
            found += bodies(answer)
            assert reader.commit()["errCode"] == 200
        else:
            assert (answer["errCode"], time.monotonic() < deadline) == (404, True), answer
            time.sleep(0.1)
    return found
