"""How many rows of a write may be there twice: by attempts, by what servers filtered, and by what they remember."""

import pytest

from dataproxy.spark.reporting.attempts import Attempt
from dataproxy.spark.reporting.copies import copies_in_job, copies_in_task
from dataproxy.spark.reporting.reports import JobReport, PartitionReport


def part(partition=0, attempt=0, *, rows=1000, record="mine", **counts):
    return PartitionReport("job", partition, attempt, rows, 10 * rows, rows, 0, 0, 1.0, record=record, **counts)


def ended(attempt=0, acked=0, possibly=0, partition=0, filtered=0):
    return Attempt("job", partition, attempt, f"{partition}-{attempt}", True, acked, possibly, (), filtered)


def silent(attempt=0, partition=0):
    return Attempt("job", partition, attempt, f"{partition}-{attempt}")


MINE = Attempt("job", 0, 0, "mine", True, 1000)


@pytest.mark.parametrize(
    ("report", "attempts", "copies"),
    [
        (part(), [MINE], 0),
        (part(copies_possible=30), [MINE], 30),
        (part(copies_possible=30, duplicates_filtered=30), [MINE], 0),
        (part(copies_possible=30, remembered=True), [MINE], 0),
        # An attempt before it was acknowledged for 400 rows, and 50 more may be there.
        (part(attempt=1), [ended(acked=400, possibly=50)], 450),
        (part(attempt=1, duplicates_filtered=420), [ended(acked=400, possibly=50)], 30),
        (part(attempt=1, duplicates_filtered=420, remembered=True), [ended(acked=400, possibly=50)], 0),
        (part(attempt=1, duplicates_filtered=100, remembered=True), [ended(acked=400, possibly=50)], 300),  # other ids
        # The second of three attempts found all rows of the first, and the third all of them.
        (part(attempt=2, duplicates_filtered=1000), [ended(0, 1000), ended(1, 1000, filtered=1000)], 0),
        (part(attempt=2, duplicates_filtered=900), [ended(0, 1000), ended(1, 1000, filtered=950)], 150),
        # An attempt that left no word may have stored all of its rows.
        (part(attempt=1), [silent()], 1000),
        (part(attempt=1), [], 1000),
        (part(attempt=3), [ended(1, acked=10)], 2010),
        (part(attempt=1, duplicates_filtered=700, remembered=True), [silent()], 0),
        (part(attempt=1, remembered=True), [silent()], 1000),  # nothing was known of it: it sent nothing, or other ids
        # A speculative copy of the task that lost.
        (part(), [MINE, ended(1, acked=1000)], 1000),
        (part(duplicates_filtered=600), [MINE, ended(1, acked=1000)], 400),
        (part(), [MINE, ended(1, acked=1000, partition=5)], 0),
    ],
)
def test_rows_that_may_be_there_twice(report, attempts, copies):
    assert copies_in_job([report], attempts) == copies
    assert JobReport.of("job", [report], attempts).duplicates_possible == copies


def test_a_task_counts_what_it_sent_again_itself():
    assert copies_in_task(part(copies_possible=5)) == part(copies_possible=5).duplicates_possible == 5
    assert copies_in_task(part(copies_possible=5, remembered=True)) == 0
    assert copies_in_task(part(copies_possible=5, duplicates_filtered=9)) == 0


def test_partitions_are_summed_and_each_has_its_own_attempts():
    reports = [
        part(0, 1, record="a"),
        part(1, 0, record="b", copies_possible=3),
        part(2, 1, record="c", remembered=True),
    ]
    attempts = [ended(0, acked=10), ended(0, acked=7, partition=2)]
    assert copies_in_job(reports, attempts) == 10 + 3 + 7


def test_the_line_names_conflicts_and_what_was_there_already():
    job = JobReport.of("job", [part(duplicates_filtered=12, conflicts=2)], [MINE])
    assert "12 rows were stored already, 0 rows possibly stored twice" in job.line()
    assert "2 rows have ids that are stored with another body" in job.line()
    assert "conflict" not in JobReport.of("job", [part()], [MINE]).line()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"known_since": 1_700_000_000.0},
            "with this runId stored before 2023-11-14T22:13:20+00:00 may be stored twice",
        ),
        ({"known_since": None}, "may be stored twice: not every server remembers ids"),
        ({"known_since": 1_700_000_000.0, "duplicates_filtered": 1000}, ""),
    ],
)
def test_a_named_write_says_since_when_rows_are_known(given, words):
    """What an earlier write with the name stored before that is in no count."""
    named = JobReport.of("job", [part(**given)], [MINE], named=True)
    assert named.known_since == given["known_since"]
    assert words in named.line() if words else "runId" not in named.line()
    assert "runId" not in JobReport.of("job", [part(**given)], [MINE]).line()


def test_the_server_that_forgets_first_counts():
    parts = [part(known_since=100.0), part(known_since=300.0), part(known_since=200.0)]
    assert JobReport.of("job", parts).known_since == 300.0
    assert JobReport.of("job", [*parts, part(known_since=None)]).known_since is None
    assert JobReport.of("job", []).known_since is None
