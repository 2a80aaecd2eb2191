"""Messages, checked and written as they travel."""

from __future__ import annotations

import itertools
import os
import socket
import time
import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import body_type, buffer_problem, plain_text, shown
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
    "item_size",
    "make_ids",
    "retold",
]

#: Delays in seconds by their levels, which begin with 1; a broker may be configured otherwise.
DELAY_LEVELS: Final = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)

_MOST: Final = 4 << 20  # bytes of a message, as brokers have it by default
_PROPERTIES_MOST: Final = 32767
_BATCH_MOST: Final = 32767  # messages
_COMPRESSED: Final = 1 | 0x300
_LEVEL: Final = 5
_INT: Final = 1 << 31
_PLAIN: Final[tuple[object, ...]] = ("", (), {}, 0)
_RESERVED: Final = frozenset(
    ("KEYS", "TAGS", "WAIT", "DELAY", "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP", "MIN_OFFSET",
     "MAX_OFFSET", "UNIQ_KEY", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME", "MAX_RECONSUME_TIMES", "BUYER_ID", "MSG_REGION",
     "TRACE_ON", "CLUSTER", "INSTANCE_ID", "CONSUME_START_TIME", "TRANSACTION_CHECK_TIMES",
     "TRANSACTION_PREPARED_QUEUE_OFFSET", "CHECK_IMMUNITY_TIME_IN_SECONDS", "__transactionId__")
)  # fmt: skip


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


class Encoded(NamedTuple):
    """A message as it travels."""

    id: str
    body: bytes
    properties: bytes
    flag: int
    sys_flag: int


def make_ids() -> Iterable[str]:
    """Return ids that nobody else makes: address, process, a random number, and a number that begins with a time."""
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = "127.0.0.1"
    head = socket.inet_aton(address) + (os.getpid() & 0xFFFF).to_bytes(2) + os.urandom(4)
    first = (time.time_ns() // 1_000_000 & 0xFFFFFFFF) << 16
    return map((head.hex().upper() + "%012X").__mod__, itertools.count(first))


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


def encode(message: Message, id_: str, compress_above: int, more: Mapping[str, str] | None = None) -> Encoded:
    """Check a message and write it.  ``more``: properties of the protocol.  Raises InvalidMessageError."""
    body = message.body
    if type(body) is not bytes:
        if not isinstance(body, (bytes, bytearray, memoryview)):
            raise body_type(body)
        try:
            body = bytes(body)
        except ValueError as error:  # the view was released
            raise buffer_problem(f"{type(body).__name__!r} has no buffer of bytes: {error}") from None
    if not body:
        raise InvalidMessageError("the body is empty", code="EMPTY_BODY", hint="brokers take no message without a body")
    if len(body) > _MOST:
        raise _too_large("a body", len(body), "split it")
    flag, sys_flag = message.flag, 0
    if type(flag) is not int or not -_INT <= flag < _INT:
        raise InvalidMessageError(f"flag {shown(flag)} is no number of 32 bits")
    if 0 < compress_above <= len(body):
        packed = zlib.compress(body, _LEVEL)
        if len(packed) < len(body):
            body, sys_flag = packed, _COMPRESSED
    return tuple.__new__(Encoded, (id_, body, _properties(message, id_, more), flag, sys_flag))


def _properties(message: Message, id_: str, more: Mapping[str, str] | None) -> bytes:
    text = f"UNIQ_KEY\x01{id_}\x02WAIT\x01true"
    if message[1:5] == _PLAIN and more is None:  # no tag, keys, properties, delay
        return text.encode()
    if message.tag:
        _check("tag", message.tag)
        if "||" in message.tag or message.tag.strip() != message.tag:
            raise InvalidMessageError(f"tag {shown(message.tag)} has blanks around it, or '||', which divides tags")
        text += f"\x02TAGS\x01{message.tag}"
    if message.keys:
        text += f"\x02KEYS\x01{_keys(message.keys)}"
    if message.delay_level:
        if type(message.delay_level) is not int or not 0 < message.delay_level <= len(DELAY_LEVELS):
            raise InvalidMessageError(f"delay_level {shown(message.delay_level)} is not 0 to {len(DELAY_LEVELS)}")
        text += f"\x02DELAY\x01{message.delay_level}"
    if type(message.properties) is not dict:
        _check_mapping(message.properties)
    for name, value in message.properties.items() if message.properties else ():
        _check("property", name)
        _check(f"property {shown(name)}", value)
        if name in _RESERVED:
            raise InvalidMessageError(f"property {shown(name)} belongs to the protocol", hint="choose another name")
        text += f"\x02{name}\x01{value}"
    for name, value in more.items() if more else ():
        text += f"\x02{name}\x01{value}"
    try:
        found = text.encode()
    except UnicodeEncodeError:
        raise InvalidMessageError("a property holds half of a surrogate pair", hint="give valid text") from None
    if len(found) > _PROPERTIES_MOST:
        raise InvalidMessageError(
            f"the properties take {len(found)} bytes, allowed are {_PROPERTIES_MOST}",
            hint="put large values into the body",
        )
    return found


def _check_mapping(given: object) -> None:
    if not isinstance(given, Mapping):
        raise InvalidMessageError(f"properties {shown(given)} is no mapping", hint="give a dict of texts")


def _keys(keys: object) -> str:
    if not isinstance(keys, (tuple, list)):
        raise InvalidMessageError(f"keys {shown(keys)} is not a tuple", hint="give a tuple of texts")
    for key in keys:
        _check("key", key)
        if " " in key:
            raise InvalidMessageError(f"key {shown(key)} has a blank, which divides keys")
    return " ".join(keys)


def _check(what: str, text: object) -> None:
    if not isinstance(text, str) or not text:
        raise InvalidMessageError(f"{what} {shown(text)} is not a text with at least one character")
    if "\x01" in text or "\x02" in text:
        raise InvalidMessageError(f"{what} {shown(text)} holds \\x01 or \\x02, which divide properties")


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
    if size > _MOST:
        raise _too_large(f"a batch up to its message {n}", size, "send fewer at once")
    return size


def _too_large(what: str, size: int, hint: str) -> InvalidMessageError:
    return InvalidMessageError(
        f"{what} has {size} bytes; brokers take up to {_MOST}", code="BODY_TOO_LARGE", hint=hint,
        details={"size": size, "limit": _MOST},
    )  # fmt: skip


def retold(properties: Mapping[str, str], more: Mapping[str, str]) -> bytes:
    """Return properties of a message that is sent again, changed by ``more``."""
    return "\x02".join(f"{name}\x01{value}" for name, value in {**properties, **more}.items()).encode()
