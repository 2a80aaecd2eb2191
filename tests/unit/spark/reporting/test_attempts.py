"""What attempts leave behind, and what the driver makes of it."""

import socket
import stat
from pathlib import Path

import pytest
from pyarrow import fs

from dataproxy.spark.reporting import attempts
from dataproxy.spark.reporting import room as rooms
from dataproxy.spark.reporting.attempts import AttemptRecord, RoomReader, Uncommitted, of_batch
from dataproxy.spark.reporting.reports import JobReport, PartitionReport
from dataproxy.spark.reporting.room import make_room, stream_name
from dataproxy.spark.writing.producers import Accounting

ACCOUNTING = Accounting(
    accepted=10, delivered=6, failed=1, expired=2, pending=1, maybe_delivered=2, errors={108: 1, "EXPIRED": 2}
)


@pytest.fixture(params=["path", "URI"])
def room(request, tmp_path, monkeypatch):
    """Return a room on this machine, and one that is reached through pyarrow."""
    if request.param == "path":
        return make_room(str(tmp_path), "job")
    far = {"far://store/job": str(tmp_path / "job"), "far://store/absent": str(tmp_path / "absent")}
    monkeypatch.setattr(rooms, "open_folder", lambda option, where: (fs.LocalFileSystem(), far[where]))
    return make_room("far://store/", "job")


def begun(room, partition=0, attempt=0, run="job"):
    return AttemptRecord(room, run=run, partition=partition, attempt=attempt)


def found(room, run="job"):
    return RoomReader(room, lambda other: other == run)


def committed(record, partition=0, attempt=0):
    return PartitionReport("job", partition, attempt, 10, 100, 10, 0, 0, 1.0, record=record.token)


def test_counts_of_attempts_that_were_not_committed_are_summed_up(room):
    for attempt in range(2):
        begun(room, attempt=attempt).end(ACCOUNTING)
    last = begun(room, attempt=2)
    last.end(Accounting(delivered=10))
    lost = Uncommitted.of(found(room).attempts, [committed(last, attempt=2)])
    assert (lost.attempts, lost.acked, lost.possibly_stored, lost.silent) == (2, 12, 6, 0)
    assert sorted(lost.failed.values()) == [2, 4]
    assert any(words.startswith("108 (ERROR_PROCESS_LOGIC, ") for words in lost.failed)
    assert lost.line().startswith("2 attempts that were not committed: 12 acknowledged, 6 possibly stored, failed: ")


def test_an_attempt_without_a_word_at_its_end_is_silent(room):
    begun(room)
    begun(room, attempt=1).end(ACCOUNTING)
    lost = Uncommitted.of(found(room).attempts)
    assert (lost.attempts, lost.silent) == (1, 1)
    assert lost.line().endswith("1 attempts ended without a report; what they sent is unknown")


def test_attempts_that_ran_where_the_room_is_not_seen_are_silent_too(room):
    begun(room, partition=1, attempt=2).end(ACCOUNTING)
    elsewhere = committed(begun(f"{room[:-3]}absent"), attempt=1)
    assert elsewhere.record == ""
    assert Uncommitted.of(found(room).attempts, [elsewhere]).silent == 3  # 0 of partition 0, 0 and 1 of partition 1


def test_counts_that_were_not_written_to_their_end_are_no_counts(tmp_path):
    room = make_room(str(tmp_path), "job")
    begun(room).end(ACCOUNTING)
    (path,) = Path(room).glob("*.ended")
    path.write_bytes(path.read_bytes()[:-3])
    lost = Uncommitted.of(found(room).attempts)
    assert (lost.attempts, lost.silent) == (0, 1)


def test_a_committed_attempt_alone_leaves_nothing_to_tell(room):
    record = begun(room)
    record.end(ACCOUNTING)
    assert Uncommitted.of(found(room).attempts, [committed(record)]) == Uncommitted()
    assert Uncommitted().line() == ""


def test_an_aborted_job_says_what_is_known_of_each_partition(room):
    record = begun(room)
    record.end(Accounting(delivered=10))
    begun(room, partition=1).end(ACCOUNTING)
    report = JobReport.of_aborted("job", [committed(record), None, None], found(room).attempts)
    assert (report.outcome, report.partitions, report.acked) == ("aborted", 1, 10)
    assert (report.unfinished_partitions, report.unknown_partitions) == (2, 1)
    line = report.aborted_line()
    assert line.startswith("at least 16 rows were acknowledged and 3 others are possibly stored, counted over all ")
    assert "; 1 of 3 partitions had finished; their rows stay delivered; job job: 10 rows in 1 partitions" in line
    assert line.endswith("; of 1 partitions no attempt left a report; what they sent is unknown")


def test_a_room_is_gone_when_its_write_is_over(room, tmp_path):
    begun(room).end(ACCOUNTING)
    found(room).clear()
    assert list(tmp_path.iterdir()) == []


def test_who_aborts_a_write_waits_for_last_words(room, monkeypatch):
    record = begun(room)
    monkeypatch.setattr(attempts.time, "sleep", lambda seconds: record.end(ACCOUNTING))
    lost = Uncommitted.of(RoomReader(room, lambda run: run == "job", patience=3600).attempts)
    assert (lost.attempts, lost.silent) == (1, 0)


def test_what_others_have_put_into_a_room_stays(tmp_path):
    room = make_room(str(tmp_path), "job")
    begun(room)
    begun(room, run="other")
    Path(room, "readme").touch()
    reader = found(room)
    reader.clear()
    assert len(reader.attempts) == 1
    assert sorted(path.name.partition("@")[0] for path in Path(room).iterdir()) == ["other", "readme"]


def test_without_a_room_a_write_goes_on(tmp_path, caplog):
    (tmp_path / "file").touch()
    assert make_room(str(tmp_path / "file"), "job") == ""
    assert "counts of failed attempts will be missing" in caplog.text
    record = begun("")
    record.end(ACCOUNTING)
    assert (record.token, record.so_far(), found("").attempts) == ("", "", [])


def test_attempts_tell_each_other_what_was_done_so_far(tmp_path):
    room = make_room(str(tmp_path), "job")
    begun(room).end(ACCOUNTING)
    begun(room, partition=1)
    record = begun(room, attempt=1)
    record.end(ACCOUNTING)
    assert record.so_far() == (
        "all 2 attempts of this write that have ended so far: 12 rows acknowledged, 6 possibly stored"
    )


def test_a_micro_batch_finds_its_own_attempts_alone(tmp_path):
    room = make_room(str(tmp_path), stream_name({"a": "1"}))
    begun(room, run="query.1")
    begun(room, run="query.11")
    reader = RoomReader(room, of_batch(1))
    assert [attempt.run for attempt in reader.of_one_run(())] == ["query.1"]
    begun(room, run="another.1")
    reader = RoomReader(room, of_batch(1))
    assert reader.of_one_run(()) == []  # nobody says which of the two is meant
    assert [attempt.run for attempt in reader.of_one_run({"another.1"})] == ["another.1"]


def test_a_query_takes_no_counts_of_another_away(tmp_path):
    room = make_room(str(tmp_path), stream_name({"a": "1"}))
    begun(room, run="query.1").end(ACCOUNTING)
    other = begun(room, run="another.1")
    RoomReader(room, of_batch(1)).clear({"query.1"})
    other.end(ACCOUNTING)
    assert [attempt.acked for attempt in RoomReader(room, of_batch(1)).attempts] == [6]
    RoomReader(room, of_batch(1)).clear({"another.1"})
    begun(room, run="query.2").end(ACCOUNTING)  # its tasks began before the other's commit
    assert [attempt.run for attempt in RoomReader(room, of_batch(2)).attempts] == ["query.2"]


def test_a_stream_has_the_same_room_whenever_it_is_planned():
    assert stream_name({"A": "1", "b": "2"}) == stream_name({"b": "2", "a": "1"})
    assert stream_name({"a": "1"}) != stream_name({"a": "2"})


def test_a_temporary_room_is_its_users_alone(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(rooms.tempfile, "gettempdir", lambda: str(tmp_path))
    room = Path(make_room("", "job"))
    assert stat.S_IMODE(room.parent.stat().st_mode) == 0o700
    assert socket.gethostname() in room.parent.name  # no other machine has a folder of that name
    room.parent.chmod(0o777)
    assert make_room("", "other") == ""
    room.parent.chmod(0o700)
    room.rmdir()
    room.parent.rmdir()
    room.parent.symlink_to(tmp_path)  # somebody else's
    assert make_room("", "other") == ""
    assert caplog.text.count("is not a folder that only this user can use") == 2


def test_a_commit_reads_no_file_of_attempts_that_ended_well(room, monkeypatch):
    begun(room).end(Accounting(delivered=10, duplicates_filtered=3))
    begun(room, partition=1).end(Accounting(pending=1))  # it has more to tell than a name holds
    monkeypatch.setattr(rooms.Room, "read", lambda self, name: pytest.fail(name) if "@0-" in name else b"{")
    well, badly = found(room).attempts
    assert (well.ended, well.acked, well.filtered, well.failed) == (True, 10, 3, ())
    assert not badly.ended


def test_an_attempt_without_errors_leaves_one_file(tmp_path):
    room = make_room(str(tmp_path), "job")
    begun(room).end(Accounting(delivered=10))
    assert [path.name.rpartition(".")[2] for path in Path(room).iterdir()] == ["ended-10-0"]


def test_the_last_word_of_an_attempt_counts(room):
    record = begun(room)
    record.end(Accounting(delivered=5, pending=1))
    record.end(Accounting(delivered=6))  # the producer was given up meanwhile, and the last answer had come
    record.end(Accounting(delivered=6))
    (attempt,) = found(room).attempts
    assert (attempt.ended, attempt.acked, attempt.possibly_stored) == (True, 6, 0)
    found(room).clear()
    assert not Path(room).exists()
