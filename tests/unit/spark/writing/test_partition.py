"""Writing a partition, with a producer whose results the test decides."""

import os
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from dataproxy.errors import InvalidMessageError, UndeliveredError
from dataproxy.spark import wording
from dataproxy.spark.planning.columns import ColumnPlan
from dataproxy.spark.planning.following import KnownProxies
from dataproxy.spark.planning.options import SinkOptions
from dataproxy.spark.planning.writeplan import TaskPlace, WritePlan
from dataproxy.spark.reporting.attempts import RoomReader
from dataproxy.spark.reporting.outlets import Outlets
from dataproxy.spark.reporting.room import make_room
from dataproxy.spark.writing import producers
from dataproxy.spark.writing.partition import write_batches
from tests.support.partitions import PLACE, FakeProducer, batches, plan, use_fakes


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    """Use fake producers, and say of each proxy that it refuses connections, without asking it."""
    use_fakes(monkeypatch)
    monkeypatch.setattr(producers, "unreachable", lambda named, *seconds: dict.fromkeys(named, "Connection refused"))


@pytest.mark.parametrize(
    ("seconds", "proxies", "row_ids", "known"),
    [(3600, 1, True, True), (None, 1, True, False), (3600, 2, True, False), (3600, 1, False, False)],
)
def test_the_report_says_since_when_the_only_server_knows_rows(monkeypatch, seconds, proxies, row_ids, known):
    """Of several servers none knows what another one stored; rows without an id are known nowhere."""
    monkeypatch.setattr(FakeProducer, "_take_reach", lambda self: seconds)
    monkeypatch.setattr(FakeProducer, "_known_endpoints", lambda self: [None] * proxies)
    counted = FakeProducer._counts
    told = {"settled_frames": 1, "filtered_frames": 1}
    monkeypatch.setattr(FakeProducer, "_counts", lambda self: {**counted(self), **told})
    before = time.time()
    report = write_batches(batches(["a"]), replace(plan(), row_ids=row_ids, began=before), PLACE)
    assert report.remembered == known
    if known:
        assert before - 3600 <= report.known_since <= time.time() - 3600
    else:
        assert report.known_since is None


def test_the_report_counts_this_tasks_rows_only():
    write_batches(batches(["a"] * 5), plan(), PLACE)
    report = write_batches(batches(["a", "bb"], ["ccc", None]), plan(), PLACE)
    assert (report.partition, report.attempt) == (3, 1)
    assert (report.rows, report.acked, report.skipped, report.bytes) == (4, 3, 1, 6)
    assert report.balanced


def test_a_partition_without_rows_has_a_report_too():
    report = write_batches(batches(), plan(), PLACE)
    assert (report.rows, report.acked) == (0, 0)


def test_tasks_of_one_process_share_a_producer():
    for _ in range(3):
        write_batches(batches(["a"]), plan(), PLACE)
    assert len(FakeProducer.made) == 1
    assert not FakeProducer.made[0].closed


def test_a_task_follows_the_manager_that_the_driver_asked():
    found = KnownProxies("tcp://127.0.0.1:1", "http://manager:8083", found_at=1.0)  # long ago
    write_batches(batches(["a"]), replace(plan(), options=replace(plan().options, proxies=found)), PLACE)
    (made,) = FakeProducer.made
    assert made.config.target == "tcp://127.0.0.1:1"
    assert made.followed == ("http://manager:8083", 0.0)


def test_few_producers_are_kept_and_the_rest_is_closed():
    for number in range(10):
        write_batches(batches(["a"]), plan(f"s{number}"), PLACE)
    assert [made.closed for made in FakeProducer.made] == [True] * 6 + [False] * 4


def test_a_refused_row_fails_the_task_with_the_counts():
    FakeProducer.refuse = {"x"}
    with pytest.raises(UndeliveredError) as caught:
        write_batches(batches(["a", "x", "b"]), plan(), PLACE)
    text = str(caught.value)
    assert "partition 3 (attempt 1): of 3 rows 2 were acknowledged, 0 skipped, 1 refused" in text
    assert text.startswith("1 of 3 rows for the group g were not delivered: code 108: 1 (ERROR_PROCESS_LOGIC, ")
    assert "proxies: 127.0.0.1:1 (" in text


def test_after_the_first_lost_row_others_get_a_moment_and_not_a_time_limit_more(monkeypatch):
    monkeypatch.setattr(FakeProducer, "silent", True)
    with pytest.raises(UndeliveredError):
        write_batches(batches(["a"] * 5), plan(), PLACE)
    (made,) = FakeProducer.made
    assert len(made.waits) == 4  # two in vain, the one in which the row was lost, and the moment
    assert sum(made.waits[2:]) < 1


def test_a_failure_ends_the_task_without_reading_on():
    FakeProducer.refuse = {"x"}
    source = batches(["x"], ["a"], ["b"])
    with pytest.raises(UndeliveredError):
        write_batches(source, plan(), PLACE)
    assert next(source).column(0).to_pylist() == ["a"]


def test_after_an_error_the_next_task_gets_a_new_producer():
    FakeProducer.refuse = {"x"}
    with pytest.raises(UndeliveredError):
        write_batches(batches(["x"]), plan(), PLACE)
    assert FakeProducer.made[0].closed
    assert write_batches(batches(["a"]), plan(), PLACE).acked == 1
    assert len(FakeProducer.made) == 2


def left(room):
    return RoomReader(room, lambda run: run == "job").attempts


def test_a_failed_attempt_leaves_its_counts_and_tells_of_those_before(tmp_path):
    FakeProducer.refuse = {"x"}
    where = replace(plan(), room=make_room(str(tmp_path), "job"))
    for attempt in range(2):
        with pytest.raises(UndeliveredError) as caught:
            write_batches(batches(["a", "x", "b"]), where, TaskPlace(0, attempt, "job"))
    found = left(where.room)
    assert [(one.attempt, one.ended, one.acked, one.failed) for one in found] == [
        (0, True, 2, ((108, 1),)),
        (1, True, 2, ((108, 1),)),
    ]
    assert "when this attempt had ended, 2 rows of it were acknowledged and 0 others are possibly stored" in str(
        caught.value
    )
    assert "all 2 attempts of this write that have ended so far: 4 rows acknowledged" in str(caught.value)


def test_an_attempt_that_fails_for_another_reason_leaves_its_counts_too(tmp_path):
    def broken():
        yield from batches(["a"])
        raise OSError("upstream")

    where = replace(plan(), room=make_room(str(tmp_path), "job"))
    with pytest.raises(OSError, match="upstream") as caught:
        write_batches(broken(), where, PLACE)
    assert [(one.ended, one.acked) for one in left(where.room)] == [(True, 1)]
    assert "1 rows of it were acknowledged" in "".join(caught.value.__notes__)


def test_where_the_room_is_not_seen_the_error_says_so_and_nothing_is_made(tmp_path):
    FakeProducer.refuse = {"x"}
    absent = tmp_path / "absent"
    with pytest.raises(UndeliveredError, match="the report lacks these counts, since the task's machine cannot reach"):
        write_batches(batches(["x"]), replace(plan(), room=str(absent)), PLACE)
    assert not absent.exists()


def test_the_commit_message_names_what_the_attempt_left(tmp_path):
    where = replace(plan(), room=make_room(str(tmp_path), "job"))
    report = write_batches(batches(["a"]), where, PLACE)
    (one,) = left(where.room)
    assert (one.token, one.ended, one.acked) == (report.record, True, 1)


def test_an_error_of_the_source_gives_the_producer_up_too():
    def broken():
        yield from batches(["a"])
        raise OSError("upstream")

    with pytest.raises(OSError, match="upstream"):
        write_batches(broken(), plan(), PLACE)
    assert FakeProducer.made[0].closed


def test_a_bad_row_is_named_by_its_number_in_the_partition():
    FakeProducer.bad = {"bad"}
    with pytest.raises(InvalidMessageError, match=r"partition 3 \(attempt 1\), row 4: the body is no good"):
        write_batches(batches(["a", "b", "c"], ["d", "bad"]), plan(), PLACE)


def test_ids_of_columns_name_no_partition_and_wait_for_no_block(monkeypatch):
    made = []

    def send(to, batch, *, value, row_ids, **names):
        made.append((type(row_ids).__name__, batch.num_rows))
        return to.accept(batch, value)

    monkeypatch.setattr(producers, "send_record_batch", send)
    where = replace(plan(), row_ids=True, columns=ColumnPlan(value=0, id_from=(0,)))
    write_batches(batches(["a"] * 10, ["b"] * 300), where, PLACE)
    assert made == [("RowKeys", 10), ("RowKeys", 300)]
    assert PLACE.key_prefix() == TaskPlace(4, 0, "job").key_prefix() == b"job.~"
    assert PLACE.key_prefix("named") == b"named.~"


@pytest.mark.parametrize("row_ids", [False, True])
def test_with_ids_rows_wait_for_whole_blocks_and_keep_their_numbers(monkeypatch, row_ids):
    sent = []

    def send(to, batch, *, value, first_row, **names):
        sent.append((first_row, batch.num_rows))
        return to.accept(batch, value)

    monkeypatch.setattr(producers, "send_record_batch", send)
    made = replace(plan(), row_ids=row_ids)
    rows = ["a"] * 1200
    report = write_batches(batches(rows[:10], [], rows[:900], rows[:290]), made, PLACE)
    assert report.rows == report.acked == 1200
    assert sent == (
        [(0, 256), (256, 512), (768, 256), (1024, 176)] if row_ids else [(0, 10), (10, 0), (10, 900), (910, 290)]
    )
    assert FakeProducer.made[0].rows == rows
    FakeProducer.bad = {"bad"}
    with pytest.raises(InvalidMessageError, match=r"partition 3 \(attempt 1\), row 914: the body is no good"):
        write_batches(batches(rows[:10], rows[:900], [*rows[:4], "bad"]), made, PLACE)


def test_a_forked_process_starts_with_no_producer(monkeypatch):
    pool = producers.ProducerPool()
    pool.lease(plan().options)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    pool.lease(plan().options)
    assert len(FakeProducer.made) == 2
    assert not FakeProducer.made[0].closed


@pytest.mark.parametrize(("dt", "is_exact"), [(-1, False), (0, True)])
def test_milliseconds_travel_where_there_is_a_column_of_times(monkeypatch, dt, is_exact):
    seen = []

    def send(to, batch, *, exact_time, **names):
        seen.append(exact_time)
        return to.accept(pa.record_batch({"value": ["a"]}), 0)

    monkeypatch.setattr(producers, "send_record_batch", send)
    producer = (("exact_time", True), ("group_id", "g"), ("target", "tcp://127.0.0.1:1"))
    made = WritePlan("job", SinkOptions(producer, "s"), ColumnPlan(value=0, dt=dt), Outlets())
    write_batches(iter([pa.record_batch({"dt": pa.array([1_720_000_000_123], pa.int64())})]), made, PLACE)
    assert seen == [is_exact]


def test_an_error_names_options_as_spark_does(monkeypatch):
    def complain(to, batch, *, value, **names):
        raise InvalidMessageError("an item is empty", hint="set empty_value to skip it", details={"item": 0})

    monkeypatch.setattr(producers, "send_record_batch", complain)
    with pytest.raises(InvalidMessageError) as caught:
        write_batches(batches(["bad"]), plan(), PLACE)
    assert caught.value.hint == "set emptyValue to skip it"


@pytest.mark.parametrize("raised", [UndeliveredError, OSError])
def test_sparks_users_are_spared_our_tracebacks_and_get_those_of_others(monkeypatch, raised):
    monkeypatch.setattr(wording, "is_sparks_own", lambda: True)
    monkeypatch.setattr(os, "environ", {})

    def broken():
        yield from batches(["x"])
        raise OSError("upstream")

    FakeProducer.refuse = {"x"} if raised is UndeliveredError else set()
    with pytest.raises(raised):
        write_batches(broken(), plan(), PLACE)
    assert os.environ == ({"SPARK_HIDE_TRACEBACK": "1"} if raised is UndeliveredError else {})
