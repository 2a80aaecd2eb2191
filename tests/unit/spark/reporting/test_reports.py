"""Accounting of partitions and jobs."""

import json
import pickle

import pytest

from dataproxy.errors import LocalProtocolError
from dataproxy.spark.reporting.outlets import Outlets
from dataproxy.spark.reporting.reports import JobReport, PartitionReport, check_accounting

seen = []
remember = seen.append


def fail(report):
    raise RuntimeError(report.job)


def part(**values):
    base = {
        "run": "j",
        "partition": 0,
        "attempt": 0,
        "rows": 10,
        "bytes": 100,
        "acked": 10,
        "skipped": 0,
        "retries": 0,
        "seconds": 1.0,
    }
    return PartitionReport(**{**base, **values})


def test_a_partition_balances_when_every_row_is_acknowledged_or_skipped():
    assert part().balanced
    assert part(acked=7, skipped=3).balanced
    assert not part(acked=7).balanced


def test_a_commit_message_can_be_pickled():
    assert pickle.loads(pickle.dumps(part(partition=3))) == part(partition=3)


def test_a_job_sums_up_its_partitions():
    job = JobReport.of("j", [part(), part(attempt=1, acked=8, skipped=2, seconds=4.5, retries=2)])
    assert (job.partitions, job.rows, job.bytes, job.acked, job.skipped) == (2, 20, 200, 18, 2)
    assert (job.retries, job.seconds, job.resent_partitions) == (2, 4.5, 1)
    assert "20 rows in 2 partitions, 18 acknowledged" in job.line()


def test_an_empty_job_is_all_zero():
    assert JobReport.of("j", []).rows == 0


def test_a_report_is_saved_in_one_step(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old")
    Outlets(str(path)).publish(JobReport.of("j", [part()]))
    assert json.loads(path.read_text())["rows"] == 10
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_micro_batches_are_lines_of_one_file(tmp_path):
    path = tmp_path / "report.jsonl"
    for number in range(3):
        Outlets(str(path)).publish(JobReport.of(f"q:{number}", [part()]), stream=True)
    assert [json.loads(line)["job"] for line in path.read_text().splitlines()] == ["q:0", "q:1", "q:2"]


def test_a_callback_gets_the_report_and_its_error_is_logged(caplog):
    report = JobReport.of("j", [part()])
    seen.clear()
    Outlets(callback=f"{__name__}:remember").publish(report)
    assert seen == [report]
    Outlets(callback=f"{__name__}:fail").publish(report)
    assert "the report callback" in caplog.text


def test_accounting_that_does_not_balance_is_an_error():
    assert check_accounting("j", [part(), part(partition=1)]) == [part(), part(partition=1)]
    with pytest.raises(LocalProtocolError, match="job j: 1 of 2 partitions reported"):
        check_accounting("j", [part(), None])
    with pytest.raises(LocalProtocolError, match="the counts of these are inconsistent"):
        check_accounting("j", [part(acked=3)])
