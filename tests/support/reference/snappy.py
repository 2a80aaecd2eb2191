"""Snappy blocks in plain Python: an unpacker for every element form, packers of literals and of repeated pieces."""

import random
from collections.abc import Iterator

__all__ = ["SnappyError", "lines", "pack_literals", "pack_repeats", "size_prefix", "tags", "unpack"]


class SnappyError(ValueError):
    """The bytes are no snappy block."""


def pack_literals(raw: bytes) -> bytes:
    """Return a valid block that holds ``raw`` as literals."""
    out = bytearray(size_prefix(len(raw)))
    for at in range(0, len(raw), 65536):
        piece = raw[at : at + 65536]
        size = len(piece) - 1
        if size < 60:
            out.append(size << 2)
        elif size < 256:
            out += bytes((60 << 2, size))
        else:
            out += bytes((61 << 2,)) + size.to_bytes(2, "little")
        out += piece
    return bytes(out)


def pack_repeats(pieces: list[tuple[bytes, int]]) -> bytes:
    """Return a valid block that holds each piece so many times in a row, in as few bytes as its form allows."""
    out = bytearray(size_prefix(sum(len(piece) * times for piece, times in pieces)))
    for piece, times in pieces:
        out += pack_literals(piece)[len(size_prefix(len(piece))) :]
        left = len(piece) * (times - 1)
        while left > 0:
            n = min(left, 64)
            out.append((n - 1) << 2 | 2)
            out += len(piece).to_bytes(2, "little")
            left -= n
    return bytes(out)


def _varint(data: bytes) -> tuple[int, int]:
    value = 0
    for i in range(5):
        if i >= len(data):
            break
        value |= (data[i] & 0x7F) << 7 * i
        if data[i] < 0x80:
            if value >= 1 << 32:
                break
            return value, i + 1
    raise SnappyError("bad length")


def unpack(block: bytes, limit: int = 1 << 26) -> bytes:
    """Return the content of a block of at most ``limit`` bytes."""
    size, at = _varint(block)
    if size > limit:
        raise SnappyError("over the limit")
    out = bytearray()
    while at < len(block):
        tag = block[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            n = tag >> 2
            if n >= 60:
                extra = n - 59
                if at + extra > len(block):
                    raise SnappyError("cut off")
                n = int.from_bytes(block[at : at + extra], "little")
                at += extra
            n += 1
            if at + n > len(block):
                raise SnappyError("cut off")
            out += block[at : at + n]
            at += n
        else:
            width = (0, 1, 2, 4)[kind]
            if at + width > len(block):
                raise SnappyError("cut off")
            offset = int.from_bytes(block[at : at + width], "little")
            at += width
            n = (tag >> 2) + 1
            if kind == 1:
                n = (tag >> 2 & 7) + 4
                offset |= (tag >> 5) << 8
            if offset == 0 or offset > len(out):
                raise SnappyError("offset outside")
            for _ in range(n):
                out.append(out[-offset])
        if len(out) > size:
            raise SnappyError("longer than said")
    if len(out) != size:
        raise SnappyError("shorter than said")
    return bytes(out)


def size_prefix(size: int) -> bytes:
    """Return the head of a block with so many bytes of content."""
    out = bytearray()
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


def tags(block: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (place in the block, place in the content, tag) of each element of a block that is whole."""
    size, at = _varint(block)
    content = 0
    while at < len(block):
        tag = block[at]
        yield at, content, tag
        kind = tag & 3
        n = (tag >> 2) + 1
        if kind == 0:
            extra = max(n - 60, 0)
            if extra:
                n = int.from_bytes(block[at + 1 : at + 1 + extra], "little") + 1
            at += 1 + extra + n
        else:
            n = (tag >> 2 & 7) + 4 if kind == 1 else n
            at += (0, 2, 3, 5)[kind]
        content += n
    assert content == size


def lines(kind: str, size: int, seed: int) -> bytes:
    """Return bytes that compress like log lines, like letters of a small alphabet, not at all, or to long copies."""
    rng = random.Random(seed)
    if kind == "random":
        return rng.randbytes(size)
    if kind == "letters":
        return bytes(rng.choices(b"abcde", k=size))
    if kind == "runs":
        runs = b""
        while len(runs) < size:
            runs += b"".join(rng.randbytes(1) * rng.randrange(1, 400) for _ in range(size // 100 + 1)) * 2
        return runs[:size]
    words = [rng.randbytes(3).hex().encode() for _ in range(400)]
    return b"|".join(rng.choices(words, k=size // 7 + 1))[:size]
