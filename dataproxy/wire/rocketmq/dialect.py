"""Bodies as fastjson writes them: read with bounds, and typed; what is written is JSON.

The dialect has keys that JSON has not: numbers without quotes, and whole objects.  A reader of JSON cannot take it, and
no library knows it.  So a body is first made true JSON, in which such a key is a text with the object's JSON inside:
Java's clients read that form as well.  Then msgspec reads it, as a type.  Most bodies are JSON, and are only checked.

Nothing is believed: a body has at most BODY_MOST bytes, VALUES_MOST values and DEPTH_MOST levels.  What it costs to
find that out grows with its bytes.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from dataproxy.errors import RemoteProtocolError

__all__ = ["BODY_MOST", "DEPTH_MOST", "VALUES_MOST", "read_body", "to_json", "write_body"]

BODY_MOST: Final = 4 << 20  #: bytes
VALUES_MOST: Final = 1 << 17
DEPTH_MOST: Final = 32

# The end may be missing: else each quote of an open text would be the start of another search to the end of all.
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS: Final = bytes({*range(256)} - {*b"[]{}"})
_INNERMOST: Final = re.compile(rb"\[\]|\{\}")
_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_TEXT: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_QUOTED: Final = re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)|\"", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]*+")
_WORDS: Final = frozenset(("true", "false", "null"))
_REFERENCE: Final = b'"$ref"'
_SHOWN: Final = 40

_T = TypeVar("_T")


def read_body(kind: type[_T], body: bytes) -> _T:
    """Return a body as a type of msgspec's; texts of numbers count as numbers, and unknown keys are left aside.

    Raises RemoteProtocolError: the body is not of the dialect or of the type, is beyond a bound, or has a reference
    (``$ref``).
    """
    if len(body) > BODY_MOST:
        raise _broken(f"it has {len(body)} bytes; expected {BODY_MOST} at most")
    if _REFERENCE in body:
        raise _broken("it has a reference ($ref) to another part of it, which this reader does not follow")
    hashable: Any = kind
    reader: msgspec.json.Decoder[_T] = _reader(hashable)
    if body.count(b",") < VALUES_MOST and not _is_deep(body):
        try:
            return reader.decode(body)
        except msgspec.ValidationError as error:
            raise _broken(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # it may be the dialect, or `to_json` says where it is no text
    text = to_json(body)
    try:
        return reader.decode(text)
    except msgspec.DecodeError as error:
        raise _broken(str(error)) from None


def write_body(value: Any) -> bytes:
    """Return a value as JSON, keys in order and without those that are null, as Java's writers have it."""
    plain = msgspec.to_builtins(value, order="sorted")
    return msgspec.json.encode(_without_nulls(plain))


@cache
def _reader(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, strict=False)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _is_deep(body: bytes) -> bool:
    """Tell whether JSON has more than DEPTH_MOST levels; also if its brackets do not match."""
    brackets = _STRINGS.sub(b"", body).translate(None, _NO_BRACKETS)
    for _ in range(DEPTH_MOST):
        if not brackets:
            break
        brackets = _INNERMOST.sub(b"", brackets)
    return bool(brackets)


def to_json(body: bytes) -> bytes:
    """Return a body of the dialect as JSON; an object that is a key becomes the text of its JSON.

    Keys may be texts, whole numbers, words, objects and arrays; texts may stand between single quotes; a comma may
    stand before a closing bracket.  Raises RemoteProtocolError.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _broken(f"at byte {error.start} it is no UTF-8") from None
    reader = _Dialect(text)
    found = reader.value(1)
    reader.blanks()
    if reader.at < len(text):
        raise reader.wrong("the end")
    return found.encode()


class _Dialect:
    """Makes JSON of a text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self._values, self._in_key = text, 0, 0, False

    def wrong(self, wanted: str) -> RemoteProtocolError:
        there = self.text[self.at : self.at + _SHOWN]
        return _broken(f"at character {self.at} there is {there!r}; expected {wanted}")

    def blanks(self) -> str:
        """Pass blanks, and return the character behind them; empty at the end."""
        self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> str:
        """Return the next value as JSON."""
        self._values += 1
        if self._values > VALUES_MOST:
            raise _broken(f"it has more than {VALUES_MOST} values")
        first = self.blanks()
        if first and first in "{[":
            if depth > DEPTH_MOST:
                raise _broken(f"at character {self.at} it is more than {DEPTH_MOST} levels deep")
            return self._object(depth) if first == "{" else self._array(depth)
        found = self._text(first) or self._match(_NUMBER)
        if found is None:
            word = self._match(_WORD)
            if word not in _WORDS:
                self.at -= len(word or "")
                raise self.wrong("a value")
            return word
        return found

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def _text(self, first: str) -> str | None:
        if first == '"':
            return self._match(_TEXT)
        inner = self._match(_QUOTED) if first == "'" else None
        if inner is None:
            return None
        return f'"{_ESCAPE.sub(_other_quotes, inner[1:-1])}"'

    def _take(self, wanted: str) -> bool:
        if self.blanks() != wanted:
            return False
        self.at += 1
        return True

    def _array(self, depth: int) -> str:
        self.at += 1
        found: list[str] = []
        while not self._take("]"):
            if found:
                self._comma("]")
                if self._take("]"):
                    break
            found.append(self.value(depth + 1))
        return f"[{','.join(found)}]"

    def _object(self, depth: int) -> str:
        self.at += 1
        found: list[str] = []
        while not self._take("}"):
            if found:
                self._comma("}")
                if self._take("}"):
                    break
            key = self._key(depth)
            if not self._take(":"):
                raise self.wrong("':'")
            found.append(f"{key}:{self.value(depth + 1)}")
        return f"{{{','.join(found)}}}"

    def _comma(self, close: str) -> None:
        if not self._take(","):
            raise self.wrong(f"',' or {close!r}")

    def _key(self, depth: int) -> str:
        first = self.blanks()
        if first and first in "{[":
            if self._in_key:  # a text in a text in a text: each level would double its backslashes
                raise self.wrong("a key without such keys inside")
            self._in_key = True
            key = json.dumps(self.value(depth + 1), ensure_ascii=False)
            self._in_key = False
            return key
        if (text := self._text(first)) is not None:
            return text
        bare = self._match(_NUMBER) or self._match(_WORD)
        if bare is None:
            raise self.wrong("a key")
        return f'"{bare}"'


def _other_quotes(found: re.Match[str]) -> str:
    if found[1] is None:
        return '\\"'
    return "'" if found[1] == "'" else found[0]


def _broken(why: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"the body is not what it should be: {why}", retriable=False, details={"reason": why})
