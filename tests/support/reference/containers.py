"""InLongMsg containers in plain Python, written from the specification."""

import struct

from tests.support.reference.frames import MalformedAttributes, strict_attributes
from tests.support.reference.snappy import SnappyError, unpack

__all__ = ["Damaged", "decode", "modified_utf8"]


class Damaged(ValueError):
    """The bytes are no container, or a damaged one."""


class _Bytes:
    """A cursor that refuses to read past the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, n: int) -> bytes:
        if n < 0 or n > self.left:
            raise Damaged("past the end")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, fmt: str) -> int:
        return struct.unpack(fmt, self.take(struct.calcsize(fmt)))[0]

    def chunk(self) -> bytes:
        return self.take(self.number(">i"))


def modified_utf8(text: str) -> bytes:
    """Return text as Java's writeUTF encodes it."""
    out = bytearray()
    for unit in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        (code,) = unit
        if 0 < code < 0x80:
            out.append(code)
        elif code < 0x800:
            out += bytes((0xC0 | code >> 6, 0x80 | code & 63))
        else:
            out += bytes((0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63))
    return bytes(out)


def _from_modified(raw: bytes) -> str:
    units = bytearray()
    cursor = _Bytes(raw)
    while cursor.left:
        first = cursor.take(1)[0]
        if first < 0x80:
            code = first
        else:
            more = 1 if 0xC0 <= first < 0xE0 else 2 if 0xE0 <= first < 0xF0 else -1
            code = first & (0x1F if more == 1 else 0x0F)
            for byte in cursor.take(more):
                if byte & 0xC0 != 0x80:
                    raise Damaged("not modified UTF-8")
                code = code << 6 | byte & 63
        units += struct.pack(">H", code)
    try:
        text = units.decode("utf-16-be")
    except UnicodeDecodeError as error:
        raise Damaged("not modified UTF-8") from error
    if modified_utf8(text) != raw.replace(b"\0", b"\xc0\x80"):
        raise Damaged("not the shortest form")
    return text


def _map(text: str) -> dict[str, str]:
    try:
        pairs = strict_attributes(text.encode())
    except MalformedAttributes as error:
        raise Damaged("attributes") from error
    return {key.decode(): value.decode() for key, value in pairs.items()}


def _inflate(payload: bytes) -> bytes:
    try:
        raw = unpack(payload)
    except SnappyError as error:
        raise Damaged("snappy") from error
    if not raw:
        raise Damaged("empty block")
    return raw


def _pairs(run: bytes) -> list[tuple[bytes, dict[str, str]]]:
    out = []
    cursor = _Bytes(run)
    while cursor.left:
        body, own = cursor.chunk(), cursor.chunk()
        if not body or not own:
            raise Damaged("empty half of a pair")
        out.append((body, _map(own.decode("utf-8", "replace"))))
    return out


def _frame(inner: bytes) -> list[tuple[bytes, dict[str, str]]]:
    cursor = _Bytes(inner)
    if cursor.number(">I") != cursor.left:
        raise Damaged("length")
    kind, group, stream, ext, seconds, count, _ = struct.unpack(">BhhHIHI", cursor.take(17))
    if kind & 31 != 7:
        raise Damaged("type")
    body = cursor.chunk()
    text = cursor.take(cursor.number(">H"))
    if cursor.take(2) != b"\xee\x01" or cursor.left:
        raise Damaged("magic")
    common = _map(text.decode("utf-8", "replace"))
    common |= {"dt": str(seconds * 1000), "cnt": str(count)}
    if not ext & 4:
        common |= {"groupId": str(group), "streamId": str(stream)}
    if kind & 0x40:
        return [(body, common)] if body else []
    if kind & 0xE0 == 0x20:
        body = _inflate(body)
    if ext & 1:
        return [(record, own | common) for record, own in _pairs(body)]
    items = _Bytes(body)
    out = []
    while items.left:
        out.append((items.chunk(), common))
    return out


def decode(data: bytes) -> list[tuple[bytes, dict[str, str]]]:
    """Return the records of a container, each with its attributes."""
    if len(data) < 4 or data[0] != 0x0F or data[1] > 4 or data[:2] != data[-2:]:
        raise Damaged("magic")
    version = data[1]
    if version == 4:
        return _frame(data[2:-2])
    cursor = _Bytes(data[2:-2])
    cursor.take((0, 8, 12, 12)[version])
    out = []
    groups = cursor.number(">i")
    if groups < 0:
        raise Damaged("negative")
    for _ in range(groups):
        common = _map(_from_modified(cursor.take(cursor.number(">H"))))
        if version == 2:
            cursor.take(4)
        payload = cursor.chunk()
        if not payload:
            raise Damaged("no flag")
        body = _inflate(payload[1:]) if payload[0] == 1 else payload[1:]
        records = _Bytes(body)
        while records.left:
            record = records.chunk()
            if version < 3:
                out.append((record, common))
                continue
            if not record:
                raise Damaged("empty run")
            out += [(body, own | common) for body, own in _pairs(record)]
    if cursor.left:
        raise Damaged("rest")
    return out
