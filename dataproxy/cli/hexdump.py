"""Bytes given as hex digits, or as what ``xxd``, ``hexdump -C``, ``od -A x -t x1z`` and packet tools print."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final

__all__ = ["DumpError", "bytes_of", "only_digits", "read_dump"]

_BETWEEN: Final = b" \t\r\n:,"
_DIGITS: Final = b"0123456789abcdefABCDEF"
_BEGINNING: Final = 4096  # bytes; in frames, some are no digits
_LINE: Final = re.compile(rb"([0-9a-fA-F]{4,16})(:?)(?:[ \t]+(.*))?")
_WORD: Final = re.compile(rb"([ \t]*)((?:[0-9a-fA-F]{2})+)(?=[ \t]|$)")
_OFFSET: Final = 6  # digits at least
_OCTAL: Final = 7  # digits, as `od` prints octal offsets
_SIZES: Final = {2: 1, 4: 2, 6: 2, 8: 4, 11: 4}  # digits of a number, hexadecimal or octal -> its bytes
_HALF: Final = 16  # digits, behind which some programs leave a second blank


class DumpError(Exception):
    """What looks like a dump, or like hex digits, is not whole."""


def only_digits(data: bytes) -> bytes | None:
    """Return hex digits without what stands between them; None if there is anything else."""
    if data[:_BEGINNING].translate(None, _BETWEEN + _DIGITS + b"x"):
        return None  # large files of frames are not copied to learn that
    digits = data.translate(None, _BETWEEN).removeprefix(b"0x")
    return digits if not digits.translate(None, _DIGITS) else None


def bytes_of(digits: bytes) -> bytes:
    """Return what hex digits mean.  Raises DumpError for half a byte."""
    if len(digits) % 2:
        raise DumpError(f"{len(digits)} hex digits are no whole number of bytes")
    return bytes.fromhex(digits.decode("ascii"))


def read_dump(data: bytes) -> bytes | None:
    """Return the bytes of a dump with an offset at the start of each line; None if this is no such dump.

    The offset of a line says how many bytes the line before it has, so text beside the digits is never read as digits.
    Raises DumpError for lines that are missing.
    """
    if data[:_BEGINNING].lstrip()[:4] != b"0000":
        return None
    lines = [line.strip() for line in data.splitlines() if line.strip()]
    found = [_LINE.fullmatch(line) for line in lines]
    first = found[0]
    if first is None or int(first[1], 16) != 0 or (len(lines) == 1 and not first[2]) or not first[3]:
        return None
    if other := _other_numbers(found):
        raise DumpError(f"the hex dump cannot be read: {other}; dump with xxd, hexdump -C or od -A x -t x1z")
    try:
        return _bytes_of_lines(lines, found)
    except DumpError:
        if (
            not first[2] and only_digits(data) is not None
        ):  # digits in lines, the first of which happens to begin with zeros
            return None
        raise


def _other_numbers(found: list[re.Match[bytes] | None]) -> str:
    """Say what ``od`` and ``hexdump`` print by default in place of bytes and their offset; "" for what can be read.

    The offset of the second line tells how many bytes the first one has.
    """
    first, second = found[0], found[1] if len(found) > 1 else None
    if first is None or second is None or first[2] or len(first[1]) < _OFFSET or len(first[1]) != len(second[1]):
        return ""
    words = (first[3] or b"").split()
    same = list(takewhile(lambda word: len(word) == len(words[0]) and not word.translate(None, _DIGITS), words))
    size = _SIZES.get(len(words[0]), 0)
    most = len(same) * size  # of the last number, some bytes may be missing
    here = int(second[1], 16)
    octal = here if second[1].translate(None, b"01234567") else int(second[1], 8)
    if octal != here and len(first[1]) == _OCTAL and most - size < octal <= most:
        return "its offsets are octal"
    if size > 1 and most - size < here <= most:
        return f"its numbers have {size} bytes, in the machine's order"
    return ""


def _bytes_of_lines(lines: list[bytes], found: list[re.Match[bytes] | None]) -> bytes:
    out = bytearray()
    width = 0
    for number, line in enumerate(found):
        if line is None:
            told = "repeated lines are left out; dump with -v" if lines[number] == b"*" else "it begins with no offset"
            raise DumpError(f"line {number + 1} of the hex dump: {told}")
        if int(line[1], 16) != len(out):
            told = f"its offset is {line[1].decode()}, {len(out):x} bytes are before it"
            raise DumpError(f"line {number + 1} of the hex dump: {told}")
        following = found[number + 1] if number + 1 < len(found) else None
        digits = _digits(line[3] or b"", whole=following is not None, halves=not line[2])
        if following is not None:
            width = int(following[1], 16) - len(out)
            if not 0 <= width * 2 <= len(digits):
                told = f"{len(digits) // 2} bytes, the next offset says {width}"
                raise DumpError(f"line {number + 1} of the hex dump: {told}")
        out += bytes.fromhex(digits[: 2 * width if width else None].decode("ascii"))
    return bytes(out)


def _digits(text: bytes, *, whole: bool, halves: bool) -> bytes:
    """Return the pairs of digits that a line begins with.

    Of the last line, which is not ``whole``, those before the text beside them; ``halves``: two blanks behind the
    eighth byte are no end.
    """
    digits = b""
    at = 0
    while word := _WORD.match(text, at):
        gap = len(word[1])
        if digits and gap > 1 and not whole and not (halves and gap == 2 and len(digits) == _HALF):
            break
        digits += word[2]
        at = word.end()
    return digits
