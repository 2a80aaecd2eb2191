"""Data times in other units are refused in plain words, by every call that takes one; a millisecond stays itself."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

import dataproxy
from dataproxy.producer.ingest.times import time_ms

SECONDS = 1_700_000_000
WORDS = {
    SECONDS: "dt=1700000000 looks like seconds; dt is milliseconds: multiply by 1000, or give a datetime",
    946_684_800: "dt=946684800 looks like seconds; dt is milliseconds: multiply by 1000, or give a datetime",
    (1 << 32) - 1: "dt=4294967295 looks like seconds; dt is milliseconds: multiply by 1000, or give a datetime",
    SECONDS
    * 10**6: "dt=1700000000000000 looks like microseconds; dt is milliseconds: divide by 1000, or give a datetime",
    SECONDS * 10**9: (
        "dt=1700000000000000000 looks like nanoseconds; dt is milliseconds: divide by 1000000, or give a datetime"
    ),
    1_700_000_000.5: (
        "dt=1700000000.5 looks like seconds; dt is milliseconds, as int: int(1000 * seconds), or give a datetime"
    ),
    1_700_000_000_000.5: "a data time cannot be the float 1700000000000.5; give milliseconds since 1970 as int",
    float("nan"): "a data time cannot be the float nan; give milliseconds since 1970 as int",
}
GOOD = (0, 1, 77, 20_240_101, 946_684_799, 1 << 32, 1_700_000_000_000, (1 << 32) * 1000 - 1)


@pytest.mark.parametrize(("value", "words"), WORDS.items())
def test_another_unit_is_named(value: object, words: str) -> None:
    with pytest.raises(dataproxy.InvalidMessageError, match=re.escape(words)) as caught:
        time_ms(value)
    assert caught.value.code == "BAD_TIME"


@pytest.mark.parametrize("value", GOOD)
def test_what_looks_like_nothing_else_is_milliseconds(value: int) -> None:
    assert time_ms(value) == value


def test_no_time_and_a_naive_one() -> None:
    assert time_ms(None) == -1
    with pytest.raises(dataproxy.InvalidMessageError, match="has no time zone"):
        time_ms(datetime(2024, 1, 2))  # noqa: DTZ001 - that is the point


def test_a_datetime_keeps_its_millisecond() -> None:
    """Seconds as float times 1000 were a millisecond early for one in 170."""
    rng = random.Random(7)
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    zone = timezone(timedelta(hours=5, minutes=30))
    for ms in [*(rng.randrange((1 << 32) * 1000) for _ in range(3000)), 0, 1, 999, (1 << 32) * 1000 - 1]:
        when = begin + timedelta(milliseconds=ms, microseconds=rng.choice((0, rng.randrange(1000))))
        assert time_ms(when) == time_ms(when.astimezone(zone)) == ms


def test_numpy_s_numbers_and_times_are_taken() -> None:
    ms = 1_700_000_000_123
    for kind in (np.int64, np.uint64):
        assert time_ms(kind(ms)) == ms
    assert time_ms(np.uint16(77)) == 77
    assert time_ms(np.datetime64(ms, "ms")) == ms
    assert time_ms(np.datetime64(ms * 10**6 + 999_999, "ns")) == ms
    assert time_ms(np.datetime64("2024-01-02")) == 1_704_153_600_000
    assert time_ms(pd.Timestamp(ms, unit="ms", tz="Europe/Berlin")) == ms


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            pd.NaT,
            "the data time is NaT, which is not a time; leave dt out, or give None: then the time of sending",
        ),
        (np.datetime64("NaT"), "the data time is NaT, which is not a time; leave dt out"),
        (np.int64(SECONDS), "dt=1700000000 looks like seconds; dt is milliseconds: multiply by 1000"),
        (np.datetime64("2500-01-01"), "is outside of 1970 to 2106"),
        (np.datetime64("1969-12-31T23:59:59.999"), "the data time -1 ms is outside of 1970 to 2106"),
        (np.datetime64(2**62, "Y"), "is outside of 1970 to 2106"),
        (np.bool_(True), "a data time cannot be the bool"),
        (np.str_("x"), "a data time cannot be the str_"),
        (np.timedelta64(5, "s"), "a data time cannot be the timedelta64"),
        (pd.Timestamp("2024-01-02"), "has no time zone"),
    ],
)
def test_numpy_s_other_values_are_refused_in_words(value: object, words: str) -> None:
    with pytest.raises(dataproxy.InvalidMessageError, match=re.escape(words)) as caught:
        time_ms(value)
    assert caught.value.code == "BAD_TIME"
