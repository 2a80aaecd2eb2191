"""Columns in Arrow's memory: the values that went in, in runs of any length, and memory that outlives its column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.base.column import Bytes, Memory, Numbers


def values_of(column):
    ends, raw = map(memoryview, column.take())
    ends = ends.cast("i")
    return [bytes(raw[ends[i] : ends[i + 1]]).decode() for i in range(len(ends) - 1)]


@given(st.lists(st.tuples(st.lists(st.text(max_size=5), max_size=4), st.integers(0, 40))))
def test_texts_repeat_together(runs):
    column = Bytes()
    for texts, times in runs:
        column.add(texts, times)
    expected = [text for texts, times in runs for text in texts * times]
    assert len(column) == len(expected)
    assert column.nbytes == sum(len(text.encode()) for text in expected)
    assert values_of(column) == expected
    assert (len(column), values_of(column)) == (0, [])


@given(st.sampled_from((4, 8)), st.lists(st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 40))))
def test_numbers_repeat(width, runs):
    column = Numbers(width)
    for value, times in runs:
        column.add(value, times)
    expected = [value for value, times in runs for _ in range(times)]
    assert len(column) == len(expected)
    assert memoryview(column.take()).cast("i" if width == 4 else "q").tolist() == expected
    assert len(column) == 0


@pytest.mark.parametrize("width", [4, 8])
def test_numbers_count(width):
    column = Numbers(width)
    column.count(0, 5)
    column.count(10, 3, 4)
    assert memoryview(column.take()).cast("i" if width == 4 else "q").tolist() == [0, 1, 2, 3, 4, 10, 14, 18]


def test_memory_outlives_its_column_and_is_read_only():
    column = Bytes()
    column.add(["abc"], 2)
    _, raw = column.take()
    column.add(["xyz"], 9)
    del column
    view = memoryview(raw)
    del raw
    assert (bytes(view), view.readonly) == (b"abcabc", True)
    with pytest.raises(TypeError):
        Memory()


def test_what_does_not_fit_is_refused():
    with pytest.raises(OverflowError):
        Numbers(4).add(1 << 31)
    with pytest.raises(OverflowError):
        Bytes().add(["x" * 65536], 32768)
    with pytest.raises(ValueError, match="2"):
        Numbers(2)
    with pytest.raises(TypeError):
        Bytes().add([b"bytes"])
