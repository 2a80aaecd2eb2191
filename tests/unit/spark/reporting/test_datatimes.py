"""Data times that cannot be meant are told of, once."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.spark.reporting.datatimes import TimeSpan, joined, odd_times, warn_once
from dataproxy.spark.reporting.reports import JobReport, PartitionReport

NOW = 1_720_000_000_000
DAY = 86_400_000


def span_of(*columns, place=0):
    span = TimeSpan(place)
    batches = [pa.record_batch({"dt": column}) for column in columns]
    assert list(span.seen(batches)) == batches
    return span.milliseconds


@pytest.mark.parametrize(
    ("columns", "span"),
    [
        ([pa.array([5, None, 3], pa.int64()), pa.array([9], pa.int64())], (3, 9)),
        ([pa.array([1_999, -1], pa.timestamp("us", "UTC"))], (-1, 1)),
        ([pa.array([None], pa.int64()), pa.array([], pa.int64())], None),
        ([pa.array([1, 2, 3, 4], pa.int64()).slice(1, 2)], (2, 3)),
    ],
)
def test_a_task_knows_its_span(columns, span):
    assert span_of(*columns) == span


def test_without_a_column_there_is_no_span():
    assert span_of(pa.array(["x"]), place=-1) is None


@given(st.lists(st.tuples(st.integers(), st.integers()) | st.none()))
def test_spans_are_joined(spans):
    found = joined(spans)
    known = [span for span in spans if span]
    assert (found is None) == (not known)
    assert found is None or all(found[0] <= first and last <= found[1] for first, last in known)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        ((20240101, 20240131), "1970-01-01 05:37:20+00:00, before the year 2000"),
        ((NOW // 1000, NOW // 1000), "1970-01-20"),
        ((NOW, NOW * 1000), f"end at {NOW * 1000} ms, more than a year ahead"),
        ((NOW, NOW + 400 * DAY), "end at 2025-08-07"),
        ((-(2**63), 2**63 - 1), "and end at"),
    ],
)
def test_odd_times_are_told_in_words(span, words):
    assert words in odd_times(span, NOW)


@pytest.mark.parametrize("span", [None, (946_684_800_000, NOW), (NOW, NOW + 300 * DAY)])
def test_nothing_is_said_of_usual_times(span):
    assert odd_times(span, NOW) == ""


def test_a_write_is_warned_of_once(caplog):
    for name in ("query once", "query once", "query other"):
        warn_once(name, (20240101, 20240101))
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["query once", "query other"]


def test_the_report_has_the_span():
    part = PartitionReport("job", 0, 0, rows=1, bytes=1, acked=1, skipped=0, retries=0, seconds=0.1, times=(3, 9))
    report = JobReport.of("job", [part, PartitionReport("job", 1, 0, 0, 0, 0, 0, 0, 0.1)])
    assert (report.earliest_dt, report.latest_dt, report.times) == (3, 9, (3, 9))
    assert JobReport.of("job", []).times is None
