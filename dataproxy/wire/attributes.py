"""Attribute texts of the InLong protocol: read strictly, as a server does, or as a client reads an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["ATTRIBUTES", "BLANKS", "Answer", "Attribute", "read_answer", "read_request", "split"]

BLANKS: Final = bytes(range(33))  #: what a server cuts from the ends of an entry
_DECIMAL: Final = re.compile(rb"[+-]?[0-9]{1,19}")
_LIMIT: Final = 1 << 63
_UNREADABLE: Final = 2147483647

#: What the attributes of the protocol mean; others are the sender's own.
ATTRIBUTES: Final = {
    "groupId": "group",
    "streamId": "stream",
    "dt": "data time, ms",
    "mid": "sequence number; the answer repeats it",
    "messageId": "sequence number of other SDKs",
    "cnt": "number of messages",
    "cp": "compression of the body",
    "mt": "kind of body; pb keeps a line end",
    "sid": "id of the frame's messages",
    "msgid": "id of this message",
    "rt": "time of receipt, ms",
    "rtms": "time of the first receipt, ms",
    "isAck": "false: no answer is wanted",
    "syncSend": "true: in order",
    "proxySend": "true: answer after storage",
    "partitionKey": "chooses the order's channel",
    "node1ip": "trace: sender",
    "rtime1": "trace: time at the sender, ms",
    "node2ip": "trace: receiver",
    "rtime2": "trace: time at the receiver, ms",
    "dpIp": "node that answers",
    "dpIP": "node that answers",
    "errCode": "result",
    "errMsg": "the server's words",
    "dup": "window of ids in seconds, messages known before, of these with another body",
}


class Attribute(NamedTuple):
    """One piece of an attribute text; ``value`` is None where the piece has no ``=``."""

    at: int  #: its first byte in the text
    key: bytes
    value: bytes | None


class Answer(NamedTuple):
    """What a client takes from the attributes of an answer."""

    code: int
    seq: int | None
    node: bytes
    message: bytes


def split(text: bytes) -> Iterator[Attribute]:
    """Yield the pieces of a text between ``&``, cut at their first ``=``; an empty text has none."""
    at = 0
    while text and at <= len(text):
        stop = text.find(b"&", at)
        stop = len(text) if stop < 0 else stop
        key, found, value = text[at:stop].partition(b"=")
        yield Attribute(at, key, value if found else None)
        at = stop + 1


def read_request(text: bytes) -> tuple[list[Attribute], tuple[int, str] | None]:
    """Return the attributes, and the first thing for which a server refuses them: where, and what was expected."""
    if not text.strip(BLANKS):
        return [], None
    found = []
    seen = set()
    wrong = None
    for at, key, value in split(text):
        entry = (key if value is None else key + b"=" + value).strip(BLANKS)
        key, cut, rest = entry.partition(b"=")
        found.append(Attribute(at, key, rest if cut else None))
        if wrong is None and entry.count(b"=") != 1:
            wrong = (at, "an entry without exactly one '='; expected key=value")
        elif wrong is None and key in seen:
            wrong = (at, f"the key {_shown(key)} stands here for the second time; expected each key once")
        seen.add(key)
    if wrong is None:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            wrong = (error.start, "bytes that are not UTF-8; expected UTF-8")
    return found, wrong


def read_answer(text: bytes) -> Answer:
    """Read an answer's attributes: the first errCode and node count, and the last sequence number."""
    code: int | None = None
    node: bytes | None = None
    message: bytes | None = None
    seq: int | None = None
    by_mid = False
    for at, key, value in split(text):
        if value is None:
            continue
        if key == b"errCode" and code is None:
            code = _code(value)
        elif key in (b"dpIp", b"dpIP") and node is None:
            node = value
        elif key == b"errMsg" and message is None:
            message = _message(text, at + len(b"errMsg="))
        elif key == b"mid" or (key == b"messageId" and not by_mid):
            number = _number(value)
            good = number is not None and -(1 << 31) <= number < 1 << 32
            seq = number & 0xFFFFFFFF if good and number is not None else None
            by_mid = by_mid or (key == b"mid" and good)
    return Answer(code or 0, seq, node or b"", message or b"")


def _number(text: bytes) -> int | None:
    if not _DECIMAL.fullmatch(text):
        return None
    value = int(text)
    return value if abs(value) < _LIMIT else None


def _code(value: bytes) -> int:
    if not value.strip(BLANKS):
        return 0
    number = _number(value)
    return number if number is not None and 0 <= number <= _UNREADABLE else _UNREADABLE


def _message(text: bytes, at: int) -> bytes:
    """Return the words from ``at`` to the next ``&`` that stands in no parentheses."""
    depth = 0
    for found in re.finditer(rb"[&()]", text[at:]):
        mark = found[0]
        if mark == b"&" and depth == 0:
            return text[at : at + found.start()]
        depth += (mark == b"(") - (mark == b")" and depth > 0)
    if depth:
        return text[at:].partition(b"&")[0]
    return text[at:]


def _shown(key: bytes) -> str:
    return repr(key[:100].decode("utf-8", "backslashreplace"))
