"""A name server and a broker of RocketMQ in one socket and in plain Python, for tests; it holds what tests say.

It reads and writes frames by the reference codec (`tests/support/reference/rocketmq.py`).
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any, Self

from tests.support.reference import rocketmq as reference

__all__ = ["Client", "RocketServer"]

Answer = tuple[int, dict[str, object], bytes] | None


class Client:
    """A connection of a client, as the server sees it."""

    def __init__(self, server: RocketServer, made: socket.socket) -> None:
        self.id = ""
        self.answers: dict[int, dict[str, Any]] = {}
        self._server, self._socket = server, made
        self._lock = threading.Lock()
        self._next = 0

    def write(
        self, code: int, flag: int, opaque: int, fields: dict[str, object], body: bytes = b"", remark: str = ""
    ) -> None:
        """Write a frame with a binary header."""
        pairs = b""
        for name, value in fields.items():
            text = str(value).encode()
            pairs += struct.pack(">h", len(name)) + name.encode() + struct.pack(">i", len(text)) + text
        said = remark.encode()
        header = (
            struct.pack(">hBhiii", code, 0, 409, opaque, flag, len(said)) + said + struct.pack(">i", len(pairs)) + pairs
        )
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(reference.frame_of(1, header, body))

    def raw(self, data: bytes) -> None:
        """Write bytes."""
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(data)

    def ask(self, code: int, fields: dict[str, object], body: bytes = b"", *, one_way: bool = False) -> dict[str, Any]:
        """Ask the client, and return its answer."""
        self._next += 1
        opaque = self._next
        self.write(code, 2 if one_way else 0, opaque, fields, body)
        end = time.monotonic() + 20
        while not one_way:
            with self._server.changed:
                if opaque in self.answers:
                    return self.answers.pop(opaque)
                assert self._server.changed.wait(end - time.monotonic()), "the client gives no answer"
        return {}

    def cut(self) -> None:
        """End the connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        """Read until the end."""
        data = bytearray()
        try:
            while True:
                try:
                    piece = self._socket.recv(65536)
                except OSError:
                    piece = b""
                if not piece:
                    break
                data += piece
                while (frame := reference.take_frame(bytes(data))) is not None:
                    del data[: len(frame)]
                    self._take(reference.read_frame(frame))
        finally:
            with self._lock:  # another thread may be writing an answer
                self._socket.close()
        self._server.gone(self)

    def _take(self, command: dict[str, Any]) -> None:
        if command["flag"] & 1:
            with self._server.changed:
                self.answers[command["opaque"]] = command
                self._server.changed.notify_all()
            return
        if command["code"] == 11:  # it may wait
            threading.Thread(target=self._reply, args=(command,), daemon=True).start()
        else:
            self._reply(command)

    def _reply(self, command: dict[str, Any]) -> None:
        fields = {name.decode(): value.decode() for name, value in command["fields"] or ()}
        answer = self._server.answer(self, command["code"], fields, command["body"], command)
        if answer is not None and not command["flag"] & 2:
            code, more, body = answer
            remark = str(more.pop("remark", ""))
            self.write(code, 1, command["opaque"], more, body, remark)


class RocketServer:
    """Listen on loopback.  ``on`` replaces the answer to a code; returning None gives none.

    ``log`` has (code, fields, body) of all requests, ``store`` the messages of each (topic, queue), ``offsets`` what
    groups have confirmed, ``members`` the client ids of each group; ``queues`` how many a topic has (`more` for those
    that are not named; 0: it does not exist); ``others`` the addresses of other brokers with the same queues.
    ``after``: one that has ended, whose port, messages and offsets this one has.
    """

    def __init__(
        self, queues: dict[str, int] | None = None, more: int = 0, *, after: RocketServer | None = None
    ) -> None:
        self.queues, self.more = {"TBW102": 8, **(queues or {})}, more
        self.log: list[tuple[int, dict[str, str], bytes]] = []
        self.store: dict[tuple[str, int], list[bytes]] = {} if after is None else after.store
        self.offsets: dict[tuple[str, str, int], int] = {} if after is None else after.offsets
        self.members: dict[str, dict[str, Client]] = {}
        self.locks: dict[tuple[str, str, int], str] = {}
        self.clients: list[Client] = []
        self.on: dict[int, Callable[[Client, dict[str, str], bytes], Answer]] = {}
        self.others: dict[str, str] = {}
        self.changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0 if after is None else after.port))
        self.port = self.shown_port = self._listener.getsockname()[1]  # the latter is the one that routes name
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self._over = False

    @property
    def target(self) -> str:
        """Return the target for clients."""
        return f"rocketmq://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._over = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self.changed:
            self.changed.notify_all()
        for client in list(self.clients):
            client.cut()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def requests(self, code: int) -> list[tuple[dict[str, str], bytes]]:
        """Return the requests with a code."""
        with self.changed:
            return [(fields, body) for one, fields, body in self.log if one == code]

    def wait(self, check: Callable[[], Any], seconds: float = 20) -> Any:
        """Wait until something is so; it is looked at after each request."""
        end = time.monotonic() + seconds
        while True:
            found = check()
            if found:
                return found
            with self.changed:
                assert time.monotonic() < end, "it did not become so"
                self.changed.wait(0.05)

    def put(self, topic: str, queue: int, body: bytes, properties: str = "", *, sys_flag: int = 0, attempts: int = 0,
            checksum: int | None = None) -> None:  # fmt: skip
        """Store a message."""
        with self.changed:
            log = self.store.setdefault((topic, queue), [])
            name, props = topic.encode(), properties.encode()
            physical = 1000 * (queue + 1) + len(log)
            summed = zlib.crc32(body) & 0x7FFFFFFF if checksum is None else checksum
            rest = struct.pack(
                ">IIiiqqiq4siq4siiq", 0xDAA320A7, summed, queue, 0, len(log), physical, sys_flag, 1_700_000_000_000,
                bytes([127, 0, 0, 1]), 1, 1_700_000_000_001, bytes([127, 0, 0, 1]), 2, attempts, 0,
            )  # fmt: skip
            rest += (
                struct.pack(">i", len(body)) + body + bytes([len(name)]) + name + struct.pack(">h", len(props)) + props
            )
            log.append(struct.pack(">i", len(rest) + 4) + rest)
            self.changed.notify_all()

    def answer(self, client: Client, code: int, fields: dict[str, str], body: bytes, command: dict[str, Any]) -> Answer:
        """Return the answer to a request."""
        with self.changed:
            self.log.append((code, fields, body))
            self.changed.notify_all()
        own = self.on.get(code)
        if own is not None:
            return own(client, fields, body)
        method = getattr(self, f"_code_{code}", None)
        if method is None:
            return (3, {"remark": f"request type {code} not supported"}, b"")
        found: Answer = method(client, fields, body)
        return found

    def gone(self, client: Client) -> None:
        """Forget a client."""
        with self.changed:
            self.clients.remove(client)
            for members in self.members.values():
                for name in [name for name, one in members.items() if one is client]:
                    del members[name]
            self.changed.notify_all()

    def _accept(self) -> None:
        while True:
            try:
                made, _ = self._listener.accept()
            except OSError:
                return
            client = Client(self, made)
            with self.changed:
                self.clients.append(client)
            thread = threading.Thread(target=client.serve, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _code_105(self, _client: Client, fields: dict[str, str], _body: bytes) -> Answer:
        n = self.queues.get(fields["topic"], self.more)
        if not n:
            return (17, {"remark": "no route"}, b"")
        brokers = {**self.others, "b": f"127.0.0.1:{self.shown_port}"}
        route = {
            "queueDatas": [{"brokerName": b, "readQueueNums": n, "writeQueueNums": n, "perm": 6} for b in brokers],
            "brokerDatas": [{"cluster": "c", "brokerName": b, "brokerAddrs": {"0": at}} for b, at in brokers.items()],
            "filterServerTable": {},
        }
        return (0, {}, json.dumps(route).encode())

    def _code_34(self, client: Client, _fields: dict[str, str], body: bytes) -> Answer:
        said = json.loads(body)
        client.id = said["clientID"]
        with self.changed:
            for group in said.get("consumerDataSet", ()):
                self.members.setdefault(group["groupName"], {})[client.id] = client
                self.queues.setdefault(f"%RETRY%{group['groupName']}", 1)
        return (0, {}, b"")

    def _code_35(self, _client: Client, fields: dict[str, str], _body: bytes) -> Answer:
        with self.changed:
            self.members.get(fields.get("consumerGroup", ""), {}).pop(fields["clientID"], None)
        return (0, {}, b"")

    def _code_38(self, _client: Client, fields: dict[str, str], _body: bytes) -> Answer:
        ids = list(self.members.get(fields["consumerGroup"], {}))
        return (0, {}, json.dumps({"consumerIdList": ids}).encode()) if ids else (1, {"remark": "no consumer"}, b"")

    def _code_310(self, _client: Client, fields: dict[str, str], body: bytes) -> Answer:
        queue = int(fields["e"])
        offset = len(self.store.get((fields["b"], queue), ()))
        self.put(fields["b"], queue, body, fields.get("i", ""), sys_flag=int(fields["f"]))
        return (0, {"msgId": "7F00000100002A9F" + f"{offset:016X}", "queueId": queue, "queueOffset": offset}, b"")

    def _code_11(self, client: Client, fields: dict[str, str], _body: bytes) -> Answer:
        key, at = (fields["topic"], int(fields["queueId"])), int(fields["queueOffset"])
        until = time.monotonic() + min(int(fields["suspendTimeoutMillis"]) / 1000, 1.0)
        with self.changed:
            while len(self.store.get(key, ())) <= at and time.monotonic() < until and not self._over:
                if client not in self.clients:
                    return None
                self.changed.wait(until - time.monotonic())
            log = self.store.get(key, [])
            found = log[at : at + int(fields["maxMsgNums"])]
        ends = {"suggestWhichBrokerId": 0, "minOffset": 0, "maxOffset": len(log), "nextBeginOffset": at + len(found)}
        if at > len(log):
            return (21, {**ends, "nextBeginOffset": len(log)}, b"")
        return (0 if found else 19, ends, b"".join(found))

    def _code_14(self, _client: Client, fields: dict[str, str], _body: bytes) -> Answer:
        found = self.offsets.get((fields["consumerGroup"], fields["topic"], int(fields["queueId"])))
        return (22, {}, b"") if found is None else (0, {"offset": found}, b"")

    def _code_15(self, _client: Client, fields: dict[str, str], _body: bytes) -> Answer:
        key = (fields["consumerGroup"], fields["topic"], int(fields["queueId"]))
        self.offsets[key] = int(fields["commitOffset"])
        return (0, {}, b"")

    def _code_30(self, _client: Client, fields: dict[str, str], _body: bytes) -> Answer:
        return (0, {"offset": len(self.store.get((fields["topic"], int(fields["queueId"])), ()))}, b"")

    def _code_31(self, _client: Client, _fields: dict[str, str], _body: bytes) -> Answer:
        return (0, {"offset": 0}, b"")

    def _code_36(self, _client: Client, _fields: dict[str, str], _body: bytes) -> Answer:
        return (0, {}, b"")

    def _code_37(self, _client: Client, _fields: dict[str, str], _body: bytes) -> Answer:
        return None

    def _code_41(self, _client: Client, _fields: dict[str, str], body: bytes) -> Answer:
        said = json.loads(body)
        got = []
        with self.changed:
            for queue in said["mqSet"]:
                key = (said["consumerGroup"], queue["topic"], queue["queueId"])
                if self.locks.setdefault(key, said["clientId"]) == said["clientId"]:
                    got.append(queue)
        return (0, {}, json.dumps({"lockOKMQSet": got}).encode())

    def _code_42(self, _client: Client, _fields: dict[str, str], body: bytes) -> Answer:
        said = json.loads(body)
        with self.changed:
            for queue in said["mqSet"]:
                key = (said["consumerGroup"], queue["topic"], queue["queueId"])
                if self.locks.get(key) == said["clientId"]:
                    del self.locks[key]
        return (0, {}, b"")
