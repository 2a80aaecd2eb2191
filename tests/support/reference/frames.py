"""Frames and attribute text of the InLong DataProxy protocol in plain Python, written from its specification.

Slow and obvious on purpose: the compiled code is compared with it on random input.
"""

import struct
from dataclasses import dataclass

__all__ = [
    "MalformedAttributes",
    "Reply",
    "binary_frame",
    "cut_frames",
    "join_items",
    "join_pairs",
    "lenient_attributes",
    "parse_reply",
    "strict_attributes",
    "text_frame",
]

BLANKS = "".join(map(chr, range(33)))


class MalformedAttributes(ValueError):
    """The attribute text is malformed."""


def strict_attributes(text: bytes) -> dict[bytes, bytes]:
    """Read attribute text as a server does."""
    blanks = BLANKS.encode()
    if not text.strip(blanks):
        return {}
    out = {}
    for piece in text.split(b"&"):
        entry = piece.strip(blanks)
        if entry.count(b"=") != 1:
            raise MalformedAttributes(entry)
        key, value = entry.split(b"=")
        if key in out:
            raise MalformedAttributes(key)
        out[key] = value
    return out


def lenient_attributes(text: bytes) -> list[tuple[bytes, bytes]]:
    """Read attribute text as a client does: pieces cut at their first equals sign."""
    return [tuple(piece.split(b"=", 1)) for piece in text.split(b"&") if b"=" in piece]


def join_items(bodies: list[bytes]) -> bytes:
    """Return a body of length-prefixed items."""
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def join_pairs(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Return a body of items, each with its attribute text."""
    return b"".join(join_items(list(pair)) for pair in pairs)


def text_frame(msg_type: int, body: bytes, attrs: bytes) -> bytes:
    """Return a text frame."""
    inner = struct.pack(">Bi", msg_type, len(body)) + body + struct.pack(">i", len(attrs)) + attrs
    return struct.pack(">I", len(inner)) + inner


def binary_frame(
    body: bytes, attrs: bytes, *, uniq: int = 1, ext: int = 4, seconds: int = 0, count: int = 1, flags: int = 0,
    group_num: int = 0, stream_num: int = 0,
) -> bytes:  # fmt: skip
    """Return a binary frame."""
    head = struct.pack(">BHHHIHII", 7 | flags, group_num, stream_num, ext, seconds, count, uniq, len(body))
    inner = head + body + struct.pack(">H", len(attrs)) + attrs + b"\xee\x01"
    return struct.pack(">I", len(inner)) + inner


def cut_frames(stream: bytes) -> list[bytes]:
    """Return the whole frames at the start of a stream."""
    frames = []
    while len(stream) >= 4 and len(stream) >= 4 + int.from_bytes(stream[:4]):
        size = 4 + int.from_bytes(stream[:4])
        frames.append(stream[:size])
        stream = stream[size:]
    return frames


@dataclass(frozen=True)
class Reply:
    """What a client learns from one frame."""

    msg_type: int
    seq: int | None = None
    code: int = 0
    node: bytes = b""
    text: bytes = b""
    load: int = -1


def _number(text: bytes) -> int | None:
    digits = text[1:] if text[:1] in (b"+", b"-") else text
    if not digits or len(digits) > 19 or any(c not in b"0123456789" for c in digits):
        return None
    value = int(text)
    return value if abs(value) < 1 << 63 else None


def _acknowledgement(msg_type: int, text: bytes, uniq: int | None) -> Reply:
    attrs = lenient_attributes(text)
    codes = [value for key, value in attrs if key == b"errCode"]
    nodes = [value for key, value in attrs if key in (b"dpIp", b"dpIP")]
    code = 0
    if codes and codes[0].strip(BLANKS.encode()):
        number = _number(codes[0])
        code = number if number is not None and 0 <= number < 1 << 31 else 2147483647
    seq = uniq
    if uniq is None:
        seq = _correlation(attrs)
    return Reply(msg_type, seq, code, nodes[0] if nodes else b"", text)


def _correlation(attrs: list[tuple[bytes, bytes]]) -> int | None:
    seq = None
    from_mid = False
    for key, value in attrs:
        if key == b"mid" or (key == b"messageId" and not from_mid):
            number = _number(value)
            good = number is not None and -(1 << 31) <= number < 1 << 32
            seq = number & 0xFFFFFFFF if good else None
            from_mid = from_mid or (key == b"mid" and good)
    return seq


def parse_reply(frame: bytes) -> Reply | None:
    """Read one whole frame from a server; None for a malformed one."""
    kind = frame[4] & 31
    inner = frame[5:]
    if kind == 1:
        return Reply(1)
    if kind == 8:
        if len(inner) < 13:
            return None
        (body_n,) = struct.unpack(">I", inner[5:9])
        body, rest = inner[9 : 9 + body_n], inner[9 + body_n :]
        if (
            len(body) != body_n
            or len(rest) < 4
            or int.from_bytes(rest[:2]) != len(rest) - 4
            or rest[-2:] != b"\xee\x01"
        ):
            return None
        known = body_n == 2 and body != b"\xff\xff"
        return Reply(8, load=int.from_bytes(body) if known else -1)
    if kind == 7:
        if len(inner) < 8 or (len(inner) - 8) % 65536 != int.from_bytes(inner[4:6]) or inner[-2:] != b"\xee\x01":
            return None
        return _acknowledgement(7, inner[6:-2], int.from_bytes(inner[:4]))
    if 2 <= kind <= 6:
        body_n = int.from_bytes(inner[:4])
        rest = inner[4 + body_n :]
        if len(inner) < 8 or len(rest) < 4 or int.from_bytes(rest[:4]) != len(rest) - 4:
            return None
        return _acknowledgement(kind, rest[4:], None)
    return Reply(kind)
