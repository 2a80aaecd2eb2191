"""Filters of SQL92 over a message's properties: comparisons, BETWEEN, IN, IS NULL, and AND, OR, NOT.

A property that is missing is null, and what is compared with null is unknown: such a message does not match, under a
NOT neither.  Properties are texts; one that is compared with a number counts as the number that it is written as, and
as unknown if it is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

__all__ = ["Filter", "SqlError", "read_filter"]

_LENGTH_MOST: Final = 4096  # characters
_DEPTH_MOST: Final = 48
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$])|(?P<text>'(?:[^']|'')*')"
    r"|(?P<word>[A-Za-z_$][\w$]*)|(?P<sign><>|<=|>=|[<>=(),]))",
    re.ASCII,
)
_KEYWORDS: Final = frozenset(("AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE"))
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip

_Value = str | float | bool | None
_Properties = Mapping[str, str]
_Operand = Callable[[_Properties], _Value]
_Test = Callable[[_Properties], bool | None]  # None: unknown


class SqlError(ValueError):
    """An expression that is no filter; the text names the place."""


class Filter:
    """What of a topic's messages somebody wants."""

    def __init__(self, expression: str, test: _Test) -> None:
        self.expression, self._test = expression, test

    def matches(self, properties: _Properties) -> bool:
        """Tell whether a message with these properties is wanted."""
        return self._test(properties) is True


def read_filter(expression: str) -> Filter:
    """Read an expression.  Raises SqlError: it is none, or too long, or too deep."""
    if len(expression) > _LENGTH_MOST:
        raise SqlError(f"the expression has {len(expression)} characters; {_LENGTH_MOST} are the most")
    reader = _Reader(_tokens(expression))
    test = reader.either(1)
    reader.expect_end()
    return Filter(expression, test)


class _Token(NamedTuple):
    kind: str  # number, text, word (a property), key (a keyword), sign; empty: the end
    text: str
    at: int


def _tokens(expression: str) -> list[_Token]:
    found, at = [], 0
    end = len(expression.rstrip())
    while at < end:
        match = _TOKEN.match(expression, at)
        if match is None:
            raise SqlError(f"at character {at} there is {expression[at : at + 20]!r}, which is no part of SQL here")
        kind = match.lastgroup or ""
        text = match[kind]
        if kind == "word" and text.upper() in _KEYWORDS:
            kind, text = "key", text.upper()
        found.append(_Token(kind, text, match.start(match.lastgroup or 0)))
        at = match.end()
    found.append(_Token("", "", end))
    return found


class _Reader:
    """Reads tokens from left to right; OR binds least, then AND, then NOT."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._i = tokens, 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._i]

    def _takes(self, *texts: str) -> str:
        """Take the next token if it is one of these keywords or signs."""
        token = self._next
        if token.kind in ("key", "sign") and token.text in texts:
            self._i += 1
            return token.text
        return ""

    def _wrong(self, wanted: str) -> SqlError:
        token = self._next
        there = f"{token.text[:40]!r}" if token.kind else "the end"
        return SqlError(f"at character {token.at} there is {there}; expected {wanted}")

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise self._wrong(repr(text))

    def expect_end(self) -> None:
        """Raise SqlError if something is left."""
        if self._next.kind:
            raise self._wrong("AND, OR or the end")

    def either(self, depth: int) -> _Test:
        """Read tests with OR between them."""
        if depth > _DEPTH_MOST:
            raise SqlError(f"the expression is more than {_DEPTH_MOST} levels deep")
        tests = [self._both(depth)]
        while self._takes("OR"):
            tests.append(self._both(depth))
        return tests[0] if len(tests) == 1 else lambda p: _any([test(p) for test in tests])

    def _both(self, depth: int) -> _Test:
        tests = [self._single(depth)]
        while self._takes("AND"):
            tests.append(self._single(depth))
        return tests[0] if len(tests) == 1 else lambda p: _all([test(p) for test in tests])

    def _single(self, depth: int) -> _Test:
        turns = 0
        while self._takes("NOT"):
            turns += 1
        if self._takes("("):
            test = self.either(depth + 1)
            self._expect(")")
        else:
            test = self._comparison()
        return _negated(test) if turns % 2 else test

    def _comparison(self) -> _Test:
        left = self._operand()
        sign = self._takes(*_COMPARE)
        if sign:
            return _compared(left, sign, self._operand())
        if self._takes("IS"):
            wanted = bool(self._takes("NOT"))
            self._expect("NULL")
            return lambda p: (left(p) is not None) is wanted
        negated = bool(self._takes("NOT"))
        if self._takes("BETWEEN"):
            least = self._operand()
            self._expect("AND")
            most = self._operand()
            above, below = _compared(left, ">=", least), _compared(left, "<=", most)
            test: _Test = lambda p: _all([above(p), below(p)])  # noqa: E731
        elif self._takes("IN"):
            test = self._among(left)
        elif negated:
            raise self._wrong("BETWEEN or IN")
        else:
            return lambda p: _truth(left(p))
        return _negated(test) if negated else test

    def _among(self, left: _Operand) -> _Test:
        self._expect("(")
        tests = [_compared(left, "=", self._operand())]
        while self._takes(","):
            tests.append(_compared(left, "=", self._operand()))
        self._expect(")")
        return lambda p: _any([test(p) for test in tests])

    def _operand(self) -> _Operand:
        token = self._next
        value: _Value
        if token.kind == "word":
            self._i += 1
            name = token.text
            return lambda p: p.get(name)
        if token.kind == "number":
            value = float(token.text)
        elif token.kind == "text":
            value = token.text[1:-1].replace("''", "'")
        elif token.kind == "key" and token.text in ("TRUE", "FALSE", "NULL"):
            value = {"TRUE": True, "FALSE": False}.get(token.text)
        else:
            raise self._wrong("a property, a number or a text between single quotes")
        self._i += 1
        return lambda p: value


def _compared(left: _Operand, sign: str, right: _Operand) -> _Test:
    """Return a comparison: of numbers if a side is one, of texts otherwise."""
    compare = _COMPARE[sign]

    def test(properties: _Properties) -> bool | None:
        a, b = left(properties), right(properties)
        if a is None or b is None:
            return None
        if isinstance(a, bool) or isinstance(b, bool):
            x, y = _truth(a), _truth(b)
            return None if x is None or y is None or sign not in ("=", "<>") else compare(x, y)
        if isinstance(a, str) and isinstance(b, str) and sign in ("=", "<>"):
            return (a == b) is (sign == "=")
        m, n = _number(a), _number(b)
        return None if m is None or n is None else compare(m, n)

    return test


def _number(value: str | float) -> float | None:
    if isinstance(value, float):
        return value
    match = _TOKEN.fullmatch(value)
    return float(value) if match is not None and match.lastgroup == "number" else None


def _truth(value: _Value) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def _negated(test: _Test) -> _Test:
    def turned(properties: _Properties) -> bool | None:
        found = test(properties)
        return None if found is None else not found

    return turned


def _any(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True
