"""Messages as a broker stores them, as records: for the few that a control thread makes or looks at.

Those on the way of data are read and written by compiled code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, NamedTuple
from zlib import crc32

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.rocketmq.headers import Header, Int, Long
from dataproxy.wire.rocketmq.names import MessageId

__all__ = [
    "BATCH",
    "COMMITTED",
    "PLAIN",
    "PREPARED",
    "ROLLED_BACK",
    "TRANSACTION",
    "Host",
    "SendHeader",
    "StoredMessage",
    "offset_id",
    "read_batch",
    "read_properties",
    "send_fields",
    "write_properties",
]  # fmt: skip

_MAGIC: Final = 0xDAA320A7
_BORN_V6, _STORE_V6 = 16, 32
_HOSTS_V6: Final = _BORN_V6 | _STORE_V6
PLAIN, PREPARED, COMMITTED, ROLLED_BACK = 0, 4, 8, 12  #: bits of `sys_flag`
TRANSACTION: Final = 12  #: the mask of these
_HEAD: Final = struct.Struct(">IIIiiqqiq")
_ITEM: Final = struct.Struct(">IIIiI")
_TOPIC_MOST, _PROPERTIES_MOST = 127, 32767
_NAMES: Final = [
    "producerGroup",
    "topic",
    "defaultTopic",
    "defaultTopicQueueNums",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "flag",
    "properties",
    "reconsumeTimes",
    "unitMode",
    "maxReconsumeTimes",
    "batch",
    "bname",
]
_LONG_NAMES: Final = dict(zip("abcdefghijklmn", _NAMES, strict=True))
BATCH: Final = 320


class Host(NamedTuple):
    """An address of IPv4 or IPv6, as a text, and a port."""

    address: str = "0.0.0.0"
    port: int = 0


_NOWHERE: Final = Host()


class SendHeader(Header, frozen=True):
    """10, 310, 324 and 325: a message or a reply; 320: several messages of one queue."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str = ""
    reconsume_times: Int = 0
    unit_mode: bool = False
    max_reconsume_times: Int = -1
    batch: bool = False


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its place and its times in ms; of `sys_flag` the bits of hosts follow from the hosts."""

    topic: str
    queue: int
    body: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    born_ms: int = 0
    born: Host = _NOWHERE
    stored_ms: int = 0
    store: Host = _NOWHERE
    reconsume_times: int = 0
    prepared_offset: int = 0
    queue_offset: int = 0
    handle: int = 0  #: the physical offset

    @classmethod
    def read(cls, data: bytes) -> StoredMessage:
        """Read one message, which has to end where the bytes end; raises RemoteProtocolError."""
        try:
            return cls._read(data)
        except (struct.error, IndexError, ValueError) as error:
            raise RemoteProtocolError(f"{len(data)} bytes are no stored message: {error}", retriable=False) from None

    @classmethod
    def _read(cls, data: bytes) -> StoredMessage:
        size, magic, _, queue, flag, queue_offset, handle, sys_flag, born_ms = _HEAD.unpack_from(data)
        if size != len(data) or magic != _MAGIC:
            raise ValueError(f"its size is {size}, its magic {magic:#x}")
        born, at = _read_host(data, _HEAD.size, sys_flag & _BORN_V6)
        (stored_ms,) = struct.unpack_from(">q", data, at)
        store, at = _read_host(data, at + 8, sys_flag & _STORE_V6)
        times, prepared = struct.unpack_from(">iq", data, at)
        body, at = _read_sized(data, at + 12, 4)
        topic, at = _read_sized(data, at, 1)
        properties, at = _read_sized(data, at, 2)
        if at != size:
            raise ValueError(f"its parts have {at} bytes")
        return cls(
            _text(topic), queue, body, read_properties(_text(properties)), flag, sys_flag & ~_HOSTS_V6, born_ms, born,
            stored_ms, store, times, prepared, queue_offset, handle,
        )  # fmt: skip

    def write(self) -> bytes:
        """Return the message's bytes.  Raises ValueError if topic or properties are too long."""
        born, store = _write_host(self.born), _write_host(self.store)
        topic = self.topic.encode("utf-8", "surrogateescape")
        properties = write_properties(self.properties).encode("utf-8", "surrogateescape")
        if len(topic) > _TOPIC_MOST or len(properties) > _PROPERTIES_MOST:
            raise ValueError(f"a topic of {len(topic)} or properties of {len(properties)} bytes are too long")
        bits = (_BORN_V6 if len(born) > 8 else 0) | (_STORE_V6 if len(store) > 8 else 0)
        rest = b"".join((
            born, struct.pack(">q", self.stored_ms), store,
            struct.pack(">iqI", self.reconsume_times, self.prepared_offset, len(self.body)), self.body,
            bytes((len(topic),)), topic, struct.pack(">H", len(properties)), properties,
        ))  # fmt: skip
        head = _HEAD.pack(
            _HEAD.size + len(rest), _MAGIC, crc32(self.body) & 0x7FFFFFFF, self.queue, self.flag, self.queue_offset,
            self.handle, self.sys_flag & ~_HOSTS_V6 | bits, self.born_ms,
        )  # fmt: skip
        return head + rest


def offset_id(data: bytes) -> str:
    """Return the id of a stored message by its place: the store's host, and the physical offset."""
    _, _, _, _, _, _, handle, sys_flag, _ = _HEAD.unpack_from(data)
    store, _ = _read_host(data, _HEAD.size + (28 if sys_flag & _BORN_V6 else 16), sys_flag & _STORE_V6)
    return str(MessageId(store.address, store.port, handle))


def send_fields(code: int, fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields of a send with the names that `SendHeader` knows: 310, 320 and 325 have names of one letter."""
    return fields if code in (10, 324) else {_LONG_NAMES.get(name, name): value for name, value in fields.items()}


def read_batch(body: bytes) -> Iterator[tuple[int, bytes, dict[str, str]]]:
    """Yield (flag, body, properties) of a batch's items; raises RemoteProtocolError."""
    at = 0
    while at < len(body):
        try:
            size, _, _, flag, _ = _ITEM.unpack_from(body, at)
            item, end = _read_sized(body[: at + size], at + _ITEM.size - 4, 4)
            properties, end = _read_sized(body[: at + size], end, 2)
        except (struct.error, ValueError) as error:
            raise RemoteProtocolError(f"the batch is broken at byte {at}: {error}", retriable=False) from None
        if end != at + size:
            raise RemoteProtocolError(f"the batch is broken at byte {at}: its size is {size}", retriable=False)
        at = end
        yield flag, item, read_properties(_text(properties))


def read_properties(text: str) -> dict[str, str]:
    """Return a message's properties by name: of two with one name the last; one without a value is none."""
    pairs = (piece.partition("\x01") for piece in text.split("\x02"))
    return {name: value for name, _, value in pairs if name and value}


def write_properties(properties: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """Return properties as the text that travels."""
    return "\x02".join(f"{name}\x01{value}" for name, value in dict(properties).items())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _read_sized(data: bytes, at: int, width: int) -> tuple[bytes, int]:
    """Return bytes behind their length, and where they end."""
    start = at + width
    size = int.from_bytes(data[at:start])
    if start + size > len(data):
        raise ValueError(f"a length of {size} at byte {at}; {max(len(data) - start, 0)} are left")
    return data[start : start + size], start + size


def _read_host(data: bytes, at: int, wide: int) -> tuple[Host, int]:
    end = at + (16 if wide else 4)
    return Host(str(ip_address(data[at:end])), int.from_bytes(data[end : end + 4])), end + 4


def _write_host(host: Host) -> bytes:
    return ip_address(host.address).packed + host.port.to_bytes(4)
