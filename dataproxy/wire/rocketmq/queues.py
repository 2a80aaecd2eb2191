"""Queues, and bodies that map queues to something: locks, offsets, states of members.

A map with queues for keys travels as no JSON: its keys are objects.  Here it is written as JSON, with the object's
text for a key, which Java's clients of 4.9 read as the same map; `objects=True` writes objects, for those that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.rocketmq.dialect import read_body, write_body

__all__ = [
    "LockRequest",
    "Queue",
    "QueueOffset",
    "read_locked",
    "read_member_offsets",
    "read_offsets",
    "read_own_offsets",
    "write_locked",
    "write_member_offsets",
    "write_offset_list",
    "write_offsets",
    "write_own_offsets",
]

_Number = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_SHOWN: Final = 80
_Offset = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Queue(Struct, frozen=True, rename="camel", order=True):
    """A queue of a topic at a broker."""

    broker_name: str
    queue_id: _Number
    topic: str


class QueueOffset(Struct, frozen=True, rename="camel"):
    """An offset of a queue, as clients of C are told it."""

    broker_name: str
    offset: _Offset
    queue_id: _Number
    topic: str


class LockRequest(Struct, frozen=True, rename="camel"):
    """41 and 42: a client wants queues for itself, or gives them back."""

    client_id: str
    consumer_group: str
    mq_set: tuple[Queue, ...]

    @classmethod
    def read(cls, body: bytes) -> LockRequest:
        """Read a body; raises RemoteProtocolError."""
        return read_body(cls, body)

    def write(self) -> bytes:
        """Return the body."""
        return write_body(self)


class _Locked(Struct):
    queues: tuple[Queue, ...] = msgspec.field(name="lockOKMQSet")


_Keyed = dict[str, _Offset]


class _Offsets(Struct, rename="camel"):
    offset_table: _Keyed | list[QueueOffset]


class _Status(Struct, rename="camel"):
    message_queue_table: _Keyed | None = None
    consumer_table: dict[str, _Keyed] | None = None


def _queue(key: str) -> Queue:
    try:
        return read_body(Queue, key.encode())
    except RemoteProtocolError as error:
        shown = key if len(key) <= _SHOWN else key[:_SHOWN] + "..."
        reason = f"the key {shown!r} is no queue: {error.details['reason']}"
        raise RemoteProtocolError(reason, retriable=False, details={"reason": reason}) from None


def _by_queue(found: _Keyed | None) -> dict[Queue, int]:
    return {_queue(key): offset for key, offset in (found or {}).items()}


def read_locked(body: bytes) -> tuple[Queue, ...]:
    """Read the answer to 41: the queues that are the client's."""
    return read_body(_Locked, body).queues


def write_locked(queues: Iterable[Queue]) -> bytes:
    """Write the answer to 41."""
    return write_body(_Locked(tuple(queues)))


def read_offsets(body: bytes) -> dict[Queue, int]:
    """Read the body of 220, in either of its forms, or the answer to 222; raises RemoteProtocolError."""
    found = read_body(_Offsets, body).offset_table
    if isinstance(found, list):
        return {Queue(one.broker_name, one.queue_id, one.topic): one.offset for one in found}
    return _by_queue(found)


def read_own_offsets(body: bytes) -> dict[Queue, int]:
    """Read the answer to 221: a member's own offsets; raises RemoteProtocolError."""
    return _by_queue(read_body(_Status, body).message_queue_table)


def read_member_offsets(body: bytes) -> dict[str, dict[Queue, int]]:
    """Read the answer to 223: the offsets of each member, by its id; raises RemoteProtocolError."""
    found = read_body(_Status, body).consumer_table or {}
    return {client: _by_queue(offsets) for client, offsets in found.items()}


def _keyed(offsets: Mapping[Queue, int], objects: bool) -> bytes:
    texts = [(msgspec.json.encode(queue, order="sorted"), b"%d" % offset) for queue, offset in offsets.items()]
    keys = [(key if objects else msgspec.json.encode(key.decode()), offset) for key, offset in texts]
    return b"{" + b",".join(b":".join(pair) for pair in keys) + b"}"


def write_offsets(offsets: Mapping[Queue, int], *, objects: bool = False) -> bytes:
    """Write the body of 220, or the answer to 222."""
    return b'{"offsetTable":' + _keyed(offsets, objects) + b"}"


def write_offset_list(offsets: Mapping[Queue, int]) -> bytes:
    """Write the body of 220 for a client of C; one of Java fails on it."""
    found = [QueueOffset(one.broker_name, offset, one.queue_id, one.topic) for one, offset in offsets.items()]
    return write_body(_Offsets(found))


def write_own_offsets(offsets: Mapping[Queue, int], *, objects: bool = False) -> bytes:
    """Write the answer to 221."""
    return b'{"consumerTable":{},"messageQueueTable":' + _keyed(offsets, objects) + b"}"


def write_member_offsets(members: Mapping[str, Mapping[Queue, int]], *, objects: bool = False) -> bytes:
    """Write the answer to 223."""
    parts = [msgspec.json.encode(client) + b":" + _keyed(offsets, objects) for client, offsets in members.items()]
    return b'{"consumerTable":{' + b",".join(parts) + b'},"messageQueueTable":{}}'
