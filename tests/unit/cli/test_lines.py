"""Lines out of a descriptor, whatever the cuts between reads."""

import os
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.cli.send.lines import delimiter_bytes, read_lines
from dataproxy.cli.send.sending import limited
from dataproxy.errors import InvalidMessageError


def lines_of(monkeypatch, pieces, delimiter=b"\n", longest=100):
    pieces = iter([*pieces, b""])
    monkeypatch.setattr(os, "read", lambda descriptor, size: next(pieces))
    return list(chain.from_iterable(read_lines(0, delimiter, longest)))


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([], []),
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a\nb"], [b"a", b"b"]),
        ([b"a", b"\n", b"b", b"c\n\n"], [b"a", b"bc", b""]),
        ([b"\n"], [b""]),
        ([b"a\r\nb\0\n"], [b"a\r", b"b\0"]),
    ],
)
def test_lines(monkeypatch, pieces, lines):
    assert lines_of(monkeypatch, pieces) == lines


@given(st.lists(st.binary(max_size=6)), st.sampled_from([b"\n", b"\0", b"ab"]), st.integers(1, 5))
def test_cuts_do_not_matter(bodies, delimiter, step):
    data = delimiter.join(bodies)
    expected = data.split(delimiter)
    if not expected[-1]:
        expected.pop()
    with pytest.MonkeyPatch.context() as monkeypatch:
        pieces = [data[i : i + step] for i in range(0, len(data), step)]
        assert lines_of(monkeypatch, pieces, delimiter) == expected


def test_a_line_without_end(monkeypatch):
    with pytest.raises(InvalidMessageError, match="line 3 has more than 100 bytes; check the delimiter") as caught:
        lines_of(monkeypatch, [b"a\nb\n", b"x" * 60, b"x" * 60])
    assert caught.value.code == "BODY_TOO_LARGE"
    assert caught.value.details["line"] == 3


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        (r"\n", b"\n"),
        (r"\r\n", b"\r\n"),
        (r"\0", b"\0"),
        (r"\x1e", b"\x1e"),
        ("|", b"|"),
        ("→", "→".encode()),
        ("\n", b"\n"),
    ],
)
def test_delimiters(text, delimiter):
    assert delimiter_bytes(text) == delimiter


@pytest.mark.parametrize("text", ["", "\\", r"\x1"])
def test_bad_delimiters(text):
    with pytest.raises(ValueError):
        delimiter_bytes(text)


@pytest.mark.parametrize("most", range(8))
def test_limited(most):
    lists = [[b"1", b"2"], [b"3"], [b"4", b"5", b"6"]]
    assert list(chain.from_iterable(limited(iter(lists), most))) == [b"%d" % i for i in range(1, 7)][:most]
    assert list(limited(iter(lists), None)) == lists


def test_limited_does_not_read_on():
    """Once there is enough, the source is not asked again: it might wait for a slow writer."""

    def source():
        yield [b"1", b"2"]
        raise AssertionError("asked again")

    assert list(limited(source(), 2)) == [[b"1", b"2"]]
    assert list(limited(source(), 0)) == []
