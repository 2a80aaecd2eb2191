"""Attribute values of any text, and back."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataproxy.escapes import ESCAPED_KEYS, NEEDS_ESCAPE, escape_attrs, unescape_attrs
from dataproxy.spark.writing.attrcolumn import escape_column

KEYS = st.text(
    st.characters(codec="ascii", categories=("L", "N", "P"), exclude_characters="&="), min_size=1, max_size=5
)
VALUES = st.text(st.one_of(st.sampled_from("%&=\n\0 ,0aAfF2é\x7f𝄞"), st.characters(codec="utf-8")), max_size=12)
ATTRS = st.dictionaries(KEYS.filter(lambda key: key != ESCAPED_KEYS), VALUES, max_size=4)


@given(ATTRS)
@example({"a": "%41", "b": "&"})
@example({"a%2Cb": "é", "c,d": "="})
def test_what_is_escaped_travels_and_comes_back(attrs):
    sent = escape_attrs(attrs)
    for value in sent.values():
        assert value.isascii()
        assert value.isprintable()
        assert not {"&", "="} & set(value)
        assert value == value.rstrip()
    assert unescape_attrs(sent) == attrs


@given(
    st.dictionaries(
        KEYS, st.text(st.characters(codec="ascii", min_codepoint=33, exclude_characters="&=\x7f")), max_size=4
    )
)
def test_values_that_need_no_escape_stay_as_they_are(attrs):
    assert escape_attrs(attrs) == attrs
    if ESCAPED_KEYS not in attrs:
        assert unescape_attrs(attrs) is attrs


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a&b=c", "a%26b%3Dc"),
        ("Zürich 100%", "Z%C3%BCrich 100%"),
        ("&%41", "%26%2541"),
        ("a\nb", "a%0Ab"),
        ("two  ", "two %20"),
    ],
)
def test_only_what_cannot_travel_is_escaped(value, sent):
    assert escape_attrs({"k": value, "plain": "%41"}) == {"k": sent, "plain": "%41", ESCAPED_KEYS: "k"}


@pytest.mark.parametrize(
    "attrs",
    [
        {ESCAPED_KEYS: "k", "k": "a&b"},
        {"k": "\ud800&"},
    ],
)
def test_what_no_escape_helps_and_what_its_caller_has_escaped_stays_as_it_is(attrs):
    assert escape_attrs(attrs) == attrs


@pytest.mark.parametrize("attrs", [{ESCAPED_KEYS: "k"}, {ESCAPED_KEYS: "k", "k": "%FF"}, {ESCAPED_KEYS: ""}])
def test_what_was_not_made_here_is_left_alone(attrs):
    assert unescape_attrs(attrs) is attrs


@given(
    st.lists(st.none() | st.dictionaries(KEYS, VALUES, max_size=3), max_size=8), st.integers(0, 3), st.integers(0, 8)
)
def test_a_column_is_escaped_as_each_row_of_it(rows, start, count):
    kind = pa.map_(pa.string(), pa.string())
    batch = pa.record_batch([pa.array([None if row is None else list(row.items()) for row in rows], kind)], ["attrs"])
    batch = batch.slice(start, count)
    rows = rows[start : start + count]
    texts = [
        None if row is None else {key.decode(): value.decode() for key, value in row}
        for row in escape_column(batch, 0)[0].column(0).cast(pa.map_(pa.binary(), pa.binary())).to_pylist()
    ]
    assert texts == [None if row is None else escape_attrs(row) for row in rows]


def test_a_column_that_needs_no_escape_is_not_touched():
    rows = [[("k", "100%41 a b")], None, []]
    batch = pa.record_batch([pa.array(rows, pa.map_(pa.string(), pa.string()))], ["attrs"])
    same, marked = escape_column(batch, 0)
    assert same is batch
    assert marked == frozenset()
    assert NEEDS_ESCAPE


def test_bytes_that_are_no_utf8_travel_as_they_are():
    column = pa.MapArray.from_arrays([0, 1], pa.array([b"k"]).view(pa.string()), pa.array([b"a\xff"]).view(pa.string()))
    escaped, _ = escape_column(pa.record_batch([column], ["attrs"]), 0)
    assert escaped.column(0).to_pylist() == [[(b"k", b"a%FF"), (b"_escaped", b"k")]]
