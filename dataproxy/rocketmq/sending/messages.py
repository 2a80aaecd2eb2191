"""Messages, checked and written as they travel."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from dataproxy._core.remoting.outgoing import DELAY_LEVELS, Encoded, Ids, check_size, encode, encode_batch
from dataproxy.errors import InvalidMessageError
from dataproxy.problems import plain_text, shown
from dataproxy.wire.rocketmq.names import is_name

__all__ = [
    "DELAY_LEVELS",
    "Encoded",
    "Message",
    "batch_body",
    "check_batch",
    "check_group",
    "check_topic",
    "encode",
    "encode_batch",
    "encode_message",
    "item_size",
    "make_ids",
    "retold",
]

_BATCH_MOST: Final = 32767  # messages


class Message(NamedTuple):
    """What is sent beside the topic.

    ``tag``: by which consumers choose.  ``keys``: by which it can be looked up.  ``delay_level``: 1 to 18, see
    `DELAY_LEVELS`; 0 is none.  ``key``: messages with the same key go to the same queue.  ``flag``: a number of 32
    bits.
    """

    body: bytes | bytearray | memoryview
    tag: str = ""
    keys: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    delay_level: int = 0
    key: str | bytes | None = None
    flag: int = 0


def make_ids() -> Ids:
    """Return ids that nobody else makes: address, process, a random number, and a number that begins with a time."""
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = "127.0.0.1"
    head = socket.inet_aton(address) + (os.getpid() & 0xFFFF).to_bytes(2) + os.urandom(4)
    return Ids(head.hex().upper(), (time.time_ns() // 1_000_000 & 0xFFFFFFFF) << 16)


def check_topic(name: object) -> str:
    """Return the name of a topic that can be written to.  Raises InvalidMessageError."""
    if not isinstance(name, str) or not is_name(name):
        raise InvalidMessageError(
            f"topic {shown(name)} is not a name of a topic", code="BAD_NAME",
            hint="it has letters of ASCII, digits, '%', '|', '_' and '-', 1 to 127 of them",
        )  # fmt: skip
    return plain_text(name)


def check_group(name: object) -> str:
    """Return the name of a group.  Raises InvalidMessageError."""
    if not isinstance(name, str) or not is_name(name) or len(name) > 120:
        raise InvalidMessageError(
            f"group {shown(name)} is not a name of a group", code="BAD_NAME",
            hint="it has letters of ASCII, digits, '%', '|', '_' and '-', 1 to 120 of them",
        )  # fmt: skip
    return plain_text(name)


def encode_message(message: Message, id_: str, compress_above: int, more: Mapping[str, str] | None = None) -> Encoded:
    """Check a message and write it, as `encode` does."""
    return encode(
        id_, message.body, message.tag, message.keys, message.properties, message.delay_level, message.flag,
        compress_above, more,
    )  # fmt: skip


def batch_body(items: Collection[Encoded]) -> bytes:
    """Return the messages of a batch, which `check_batch` has admitted, as one body."""
    parts: list[bytes] = []
    for one in items:
        parts += (
            item_size(one).to_bytes(4), bytes(8), one.flag.to_bytes(4, signed=True), len(one.body).to_bytes(4),
            one.body, len(one.properties).to_bytes(2), one.properties,
        )  # fmt: skip
    return b"".join(parts)


def item_size(one: Encoded) -> int:
    """Return the bytes of a message in a batch."""
    return 22 + len(one.body) + len(one.properties)


def check_batch(n: int, size: int) -> int:
    """Return the bytes of a batch's first ``n`` messages.  Raises InvalidMessageError if that is more than may be."""
    if n > _BATCH_MOST:
        raise InvalidMessageError(f"a batch has more than {_BATCH_MOST} messages", hint="send fewer at once")
    check_size(f"a batch up to its message {n}", size, "send fewer at once")
    return size


def retold(properties: Mapping[str, str], more: Mapping[str, str]) -> bytes:
    """Return properties of a message that is sent again, changed by ``more``."""
    return "\x02".join(f"{name}\x01{value}" for name, value in {**properties, **more}.items()).encode()
