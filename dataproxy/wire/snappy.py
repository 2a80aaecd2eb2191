"""Snappy blocks, unpacked in plain Python with a limit."""

from __future__ import annotations

__all__ = ["SnappyError", "unpack"]

_VARINT_BYTES = 5
_LITERAL, _NEAR = 0, 1  # kinds of elements; 2 and 3 have offsets of two and four bytes


class SnappyError(ValueError):
    """The bytes are no snappy block; ``at`` is the byte of the block where that shows."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


def unpack(block: bytes, limit: int) -> bytes:
    """Return the content of a block.

    Memory grows with what is unpacked and not with the announced size, at most to ``limit`` bytes.  Raises SnappyError.
    """
    size, at = _size(block)
    if size > limit:
        raise SnappyError(0, f"the block announces {size} bytes, the limit is {limit}")
    out = bytearray()
    while at < len(block):
        start = at
        tag = block[at]
        kind = tag & 3
        if kind == _LITERAL:
            at, n = _literal(block, at)
            out += block[at : at + n]
            at += n
        else:
            extra = (0, 1, 2, 4)[kind]
            if at + 1 + extra > len(block):
                raise SnappyError(start, "a copy is cut short")
            offset = int.from_bytes(block[at + 1 : at + 1 + extra], "little")
            n = (tag >> 2) + 1
            if kind == _NEAR:
                n = (tag >> 2 & 7) + 4
                offset |= tag >> 5 << 8
            if not 0 < offset <= len(out):
                raise SnappyError(start, f"a copy begins {offset} bytes back, {len(out)} are there")
            begin = len(out) - offset
            piece = bytes(out[begin : begin + n])
            out += (piece * (n // len(piece) + 1))[:n]
            at += 1 + extra
        if len(out) > size:
            raise SnappyError(start, f"more than the announced {size} bytes come out")
    if len(out) != size:
        raise SnappyError(len(block), f"{len(out)} bytes come out, {size} were announced")
    return bytes(out)


def _size(block: bytes) -> tuple[int, int]:
    size = 0
    for at, byte in enumerate(block[:_VARINT_BYTES]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            if size >= 1 << 32:
                break
            if size == 0:
                break
            return size, at + 1
    raise SnappyError(0, "it does not begin with a size of 1 or more")


def _literal(block: bytes, at: int) -> tuple[int, int]:
    """Return where the literal's bytes begin, and how many they are."""
    n = block[at] >> 2
    begin = at + 1
    if n >= 60:
        extra = n - 59
        n = int.from_bytes(block[begin : begin + extra], "little")
        begin += extra
    if n + 1 > len(block) - begin:
        raise SnappyError(at, f"a literal of {n + 1} bytes is cut short")
    return begin, n + 1
