"""Books of partitions and jobs."""

import json
import pickle

from dataproxy.spark.reports import JobReport, PartitionReport


def part(**values):
    base = {
        "partition": 0, "attempt": 0, "rows": 10, "bytes": 100, "acked": 10, "skipped": 0, "retries": 0, "seconds": 1.0
    }  # fmt: skip
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
    JobReport.of("j", [part()]).save(path)
    assert json.loads(path.read_text())["rows"] == 10
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]
