"""Files of rows that could not be sent."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from dataproxy.errors import ConfigError
from dataproxy.spark import badrecords
from dataproxy.spark.badrecords import BadRecords, keep_committed, read_policy, remove_all
from dataproxy.spark.reporting.reports import PartitionReport

BATCH = pa.record_batch({"value": ["a", None, "c"], "stream_id": ["s", "t", None]})
REFUSED = [(1, "BAD_BODY", "a value is null (item 1)"), (2, "BAD_NAME", "the stream_id of row 2 is null")]


def records(where, **place):
    return BadRecords(str(where), **{"run": "job", "partition": 3, "attempt": 1, **place})


def test_rows_are_written_with_their_reasons(tmp_path):
    bad = records(tmp_path / "bad")
    bad.add(BATCH, 100, REFUSED)
    assert [path.name for path in (tmp_path / "bad").iterdir()] == [
        ".bad-job-00003-1.jsonl"
    ]  # Spark reads no dot files
    path = bad.close()
    assert path == str(tmp_path / "bad" / "bad-job-00003-1.jsonl")
    assert [json.loads(line) for line in Path(path).read_text().splitlines()] == [
        {"run": "job", "partition": 3, "attempt": 1, "row": 101, "code": "BAD_BODY", "reason": "a value is null",
         "columns": {"value": None, "stream_id": "t"}},
        {"run": "job", "partition": 3, "attempt": 1, "row": 102, "code": "BAD_NAME", "reason": "the stream_id is null",
         "columns": {"value": "c", "stream_id": None}},
    ]  # fmt: skip
    assert (bad.count, bad.reasons) == (2, {"BAD_BODY": 1, "BAD_NAME": 1})


def test_nothing_is_written_without_bad_rows(tmp_path):
    bad = records(tmp_path / "bad")
    bad.add(BATCH, 0, [])
    assert bad.close() == ""
    assert not (tmp_path / "bad").exists()


def test_skipped_rows_are_counted():
    bad = records("skip")
    bad.add(BATCH, 0, REFUSED)
    assert (bad.count, bad.close()) == (2, "")


def test_a_failed_attempt_leaves_nothing(tmp_path):
    bad = records(tmp_path)
    bad.add(BATCH, 0, REFUSED)
    bad.abandon()
    bad.abandon()
    assert list(tmp_path.iterdir()) == []


def report(partition, attempt, bad_file, run="job"):
    return PartitionReport(run, partition, attempt, 0, 0, 0, 0, 0, 0.0, refused=bool(bad_file), bad_file=bad_file)


def test_only_committed_files_are_kept(tmp_path):
    kept = {}
    places = [("job", 0, 0), ("job", 0, 1), ("job", 0, 2), ("job", 1, 0), ("job", 1, 1), ("job2", 0, 0)]
    for run, partition, attempt in places:
        bad = records(tmp_path, run=run, partition=partition, attempt=attempt)
        bad.add(BATCH, 0, REFUSED)
        kept[run, partition, attempt] = bad.close()
    killed = records(tmp_path, partition=1, attempt=2)
    killed.add(BATCH, 0, REFUSED)  # its worker is killed before it closes the file
    committed = [("job", 0, 1), ("job", 1, 0)]
    keep_committed(str(tmp_path), [report(p, a, kept[run, p, a]) for run, p, a in committed] + [report(9, 0, "")])
    assert sorted(map(str, tmp_path.iterdir())) == sorted(kept[place] for place in [*committed, ("job2", 0, 0)])


def test_a_commit_never_lists_the_folder(tmp_path, monkeypatch):
    """A stream fills it for months."""
    bad = records(tmp_path, attempt=0)
    bad.add(BATCH, 0, REFUSED)
    monkeypatch.setattr(fs, "FileSelector", None)
    keep_committed(str(tmp_path), [report(3, 0, bad.close()), report(4, 3, "")])
    assert len(list(tmp_path.iterdir())) == 1


def test_without_bad_records_a_commit_asks_for_nothing(monkeypatch):
    monkeypatch.setattr(badrecords, "open_folder", None)
    keep_committed("/bad", [report(3, 0, ""), report(4, 3, "")])


def test_a_failed_batch_leaves_no_files(tmp_path):
    for run, partition in [("job", 0), ("job", 1), ("job2", 0)]:
        bad = records(tmp_path, run=run, partition=partition)
        bad.add(BATCH, 0, REFUSED)
        kept = bad.close()
    remove_all(str(tmp_path), "job")
    assert list(map(str, tmp_path.iterdir())) == [kept]


def test_a_folder_that_cannot_be_seen_is_no_failure(tmp_path, caplog):
    remove_all(str(tmp_path / "none"), "job")
    remove_all("fail", "job")
    keep_committed("fail", [report(3, 0, "x")])
    keep_committed(str(tmp_path / "none"), [report(3, 1, "x")])
    assert caplog.text == ""
    (tmp_path / "file").write_text("")
    remove_all(str(tmp_path / "file"), "job")
    assert "may be left" in caplog.text


@pytest.mark.parametrize(("text", "policy"), [("fail", "fail"), ("SKIP", "skip")])
def test_policies(text, policy):
    assert read_policy(text) == policy


def test_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_policy("./bad") == str(tmp_path / "bad")
    assert read_policy(f"file:{tmp_path}/bad") == f"{tmp_path}/bad"
    for text in (f"file:{tmp_path}/a b", f"file://{tmp_path}/a%20b", f"FILE://localhost{tmp_path}/a b"):
        assert read_policy(text) == f"{tmp_path}/a b"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("s3a://bucket/bad", "write s3://"),
        ("hdfs2://host/bad", "a URI that pyarrow.fs knows"),
        ("file://elsewhere/bad", "names the machine 'elsewhere'"),
        ("dbfs:/bad", "write dbfs://..., or ./dbfs:/bad for a path"),
    ],
)
def test_uris_that_cannot_be_used_are_refused_with_a_way_out(text, what):
    with pytest.raises(ConfigError, match=re.escape(what)) as caught:
        read_policy(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["", "ignore", "nonsense://x/y"])
def test_other_words_are_refused(text):
    with pytest.raises(ConfigError, match="badRecords"):
        read_policy(text)


def test_a_uri_works_like_a_path(tmp_path):
    bad = records(f"file://{tmp_path}/bad")
    bad.add(BATCH, 0, REFUSED)
    path = bad.close()
    keep_committed(f"file://{tmp_path}/bad", [report(3, 1, path)])
    assert [str(found) for found in (tmp_path / "bad").iterdir()] == [path]
