"""Expressions of tags: which streams are looked into, and which messages are taken of them."""

import pytest

from tests.native.probe_remoting import Filter

NAMELESS = b""
PARSE_FAILED = 23


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        (b"", []), (b"*", []), (b"  * ", []), (b"||", []), (b" || || ", []), (b"a", [b"a"]), (b" a ", [b"a"]),
        (b"a||b", [b"a", b"b"]), (b"a || b", [b"a", b"b"]), (b"|| a ||", [b"a"]), (b"a|b", [b"a|b"]),
        (b"a|||b", [b"a", b"|b"]), (b"a || *", [b"a", b"*"]), (b"a b || c", [b"a b", b"c"]),
        (b"a\t||\nb", [b"a", b"b"]),
        ("é || ü".encode(), ["é".encode(), "ü".encode()]),
    ],
)  # fmt: skip
def test_expressions(expression, tags):
    found = Filter(expression)
    assert (found.code, found.tags, found.streams) == (0, tags, tags)


def test_a_tag_that_comes_twice_is_looked_for_once():
    found = Filter(b"a || b || a || b")
    assert found.streams == [b"a", b"b"]


def test_a_tag_that_no_stream_is_called_by_is_in_the_one_without_a_name():
    odd = b"a=b"
    found = Filter(b"plain || " + odd + b" || \xff\xfe")
    assert found.streams == [b"plain", NAMELESS]
    assert found.takes(b"plain")
    assert found.takes(NAMELESS, b"TAGS\x01a=b")
    assert found.takes(NAMELESS, b"KEYS\x01k\x02TAGS\x01\xff\xfe\x02")
    assert not found.takes(NAMELESS, b"TAGS\x01a=c")
    assert not found.takes(NAMELESS, b"KEYS\x01a=b")
    assert not found.takes(NAMELESS)


def test_a_filter_without_odd_tags_takes_whatever_its_streams_have():
    assert Filter(b"a").takes(b"a")
    assert Filter(b"*").takes(NAMELESS)


def test_bounds():
    assert Filter(b" || ".join(b"t%d" % i for i in range(256))).code == 0
    assert Filter(b" || ".join(b"t%d" % i for i in range(257))).code == PARSE_FAILED
    assert Filter(b"||".join([b"a"] * 257)).code == PARSE_FAILED
    assert Filter(b"x" * 255).streams == [b"x" * 255]
    assert Filter(b"x" * 256).streams == [NAMELESS]
    assert Filter(b"x" * 32767).code == 0
    assert Filter(b"x" * 32768).code == PARSE_FAILED
