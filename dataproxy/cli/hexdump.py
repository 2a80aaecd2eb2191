"""Bytes given as hex digits, or as what ``xxd``, ``hexdump -C``, ``od -A x -t x1z`` and packet tools print."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

__all__ = ["DumpError", "bytes_of", "only_digits", "read_dump"]

_BETWEEN: Final = b" \t\r\n:,"
_DIGITS: Final = b"0123456789abcdefABCDEF"
_BEGINNING: Final = 4096  # bytes; in frames, some are no digits
_LINE: Final = re.compile(rb"([0-9a-fA-F]{4,16})(:?)(?:[ \t]+(.*))?")
_WORD: Final = re.compile(rb"([ \t]*)((?:[0-9a-fA-F]{2})+)(?=[ \t]|$)")
_OFFSET: Final = 6  # digits at least
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
    certain = bool(first[2]) or _has_offsets(found)
    try:
        if certain and not first[2] and len(first[3].split()[0]) != len("ff"):
            raise DumpError("line 1 of the hex dump: its numbers are not single bytes")
        return _bytes_of_lines(lines, found)
    except DumpError as error:
        if not certain and only_digits(data) is not None:
            return None  # digits in lines, the first of which happens to begin with zeros
        raise DumpError(f"{error}; dump with xxd, hexdump -C or od -A x -t x1z") from None


def _has_offsets(found: list[re.Match[bytes] | None]) -> bool:
    """Tell whether the lines begin with offsets of any base: numbers of one length that increase from 0."""
    offsets = [line[1] for line in found if line is not None]
    rising = all(one < other for one, other in pairwise(offsets))
    return rising and len(offsets) > 1 and {len(one) for one in offsets} == {max(len(offsets[0]), _OFFSET)}


def _bytes_of_lines(lines: list[bytes], found: list[re.Match[bytes] | None]) -> bytes:
    out = bytearray()
    width = 0
    for number, line in enumerate(found):
        try:
            if line is None:
                told = "repeated lines are left out, -v prints them"
                raise DumpError(told if lines[number] == b"*" else "it begins with no offset")
            if int(line[1], 16) != len(out):
                raise DumpError(f"its offset is {line[1].decode()}, {len(out):x} bytes are before it")
            following = found[number + 1] if number + 1 < len(found) else None
            if following is not None:
                width = int(following[1], 16) - len(out)
            out += _bytes_of_line(line, width, whole=following is not None)
        except DumpError as error:
            raise DumpError(f"line {number + 1} of the hex dump: {error}") from None
    return bytes(out)


def _bytes_of_line(line: re.Match[bytes], width: int, *, whole: bool) -> bytes:
    """Return the bytes of a line: at most ``width``, if that is known, and exactly as many of a ``whole`` one."""
    text = line[3] or b""
    digits, ends = _digits(text, whole=whole, halves=not line[2])
    if whole and not 0 <= width * 2 <= len(digits):
        raise DumpError(f"{len(digits) // 2} bytes, the next offset says {width}")
    data = bytes.fromhex(digits[: 2 * width if width else None].decode("ascii"))
    beside = text[ends.get(2 * len(data), 0) :].strip()
    shown = bytes(byte if 32 <= byte < 127 else ord(".") for byte in data).strip()
    if line[2] and data and beside not in (b"", shown):
        raise DumpError("the text beside the digits is of other bytes")
    return data


def _digits(text: bytes, *, whole: bool, halves: bool) -> tuple[bytes, dict[int, int]]:
    """Return the pairs of digits that a line begins with, and where each word of them ends: digits -> place.

    Of the last line, which is not ``whole``, those before the text beside them; ``halves``: two blanks behind the
    eighth byte are no end.
    """
    digits = b""
    ends = {}
    at = 0
    while word := _WORD.match(text, at):
        gap = len(word[1])
        if digits and gap > 1 and not whole and not (halves and gap == 2 and len(digits) == _HALF):
            break
        digits += word[2]
        at = word.end()
        ends[len(digits)] = at
    return digits, ends
