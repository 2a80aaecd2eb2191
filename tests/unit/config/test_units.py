"""Durations and sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.config.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5), ("100ms", 0.1), ("2m", 120), ("2min", 120), ("1h", 3600), ("1d", 86400), ("7us", 7e-6),
        ("1m30s", 90), (" 1.5 S ", 1.5), (".5s", 0.5), ("5", 5), ("0.25", 0.25), ("1e-3", 0.001), (3, 3),
        (0.5, 0.5), (0, 0),
    ],
)  # fmt: skip
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)
    assert isinstance(parse_duration(text), float)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 << 20), ("64MB", 64_000_000), ("1GiB", 1 << 30), ("1tib", 1 << 40), ("512", 512),
        ("512B", 512),
        ("1.5KiB", 1536), ("10 kb", 10_000), (7, 7), (7.0, 7), ("1GiB512MiB", 3 << 29),
        ("2TB", 2 * 10**12), ("1gb", 10**9),
    ],
)  # fmt: skip
def test_sizes(text, size):
    assert parse_size(text) == size
    assert isinstance(parse_size(text), int)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("5MB", "has 'MB', which is not a unit of time"),
        ("5 parsecs", "has 'parsecs'"),
        ("s", "is not a duration"),
        ("", "is empty"),
        ("5s 3", "lacks a unit"),
        ("5s!", "is not a duration"),
        ("-5s", "is not a duration"),
        ("1e999", "is not finite"),
        (float("nan"), "is not finite"),
        (True, "is not a duration"),
        (None, "is not a duration"),
        ([5], "is not a duration"),
    ],
)
def test_bad_durations_say_how_to_write_them(value, problem):
    with pytest.raises(ValueError, match=r"write e.g. '5s', '100ms', '2m'") as caught:
        parse_duration(value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("64s", "has 's', which is not a unit of size"),
        ("64M", "has 'M'"),
        ("0.3B", "is not a whole number"),
        (0.5, "is not a whole number"),
        (float("inf"), "is not a whole number"),
        ("", "is empty"),
        ("MiB", "is not a size"),
        (False, "is not a size"),
    ],
)
def test_bad_sizes_say_how_to_write_them(value, problem):
    with pytest.raises(ValueError, match=r"write e.g. '64MiB', '64MB', '1GiB'") as caught:
        parse_size(value)
    assert problem in str(caught.value)


@given(st.integers(0, 10**15))
def test_size_text_round_trip(size):
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 10**12))
def test_duration_text_round_trip(micros):
    assert parse_duration(format_duration(micros / 1e6)) == pytest.approx(micros / 1e6, abs=1e-9)
