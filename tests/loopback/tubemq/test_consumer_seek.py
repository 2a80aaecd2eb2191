"""Partitions that are read from another place: what comes, what becomes of packs, and what is no place."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from typing import Any

import numpy as np
import pytest

from dataproxy import AsyncConsumer, Consumer
from dataproxy.errors import ClosedError, ConfigError, ConfirmError, ForkedError, SeekError
from tests.support.consumers import COMMIT, GET, Opener, balanced, drain, next_pack, quick_members
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

INDEX = 28
KEY = "1:one:0"
REGISTER = "RegisterRequestC2B"


def filled(tube: TubeServer, n: int = 6, topic: str = "one") -> None:
    """Store messages, each of which is a pack."""
    tube.settings.pack_bytes = 1
    for i in range(n):
        tube.put(topic, b"%d" % i)


def reading(tube: TubeServer, opened: Opener, **options: Any) -> Consumer:
    """Return a consumer that has its partition."""
    consumer = opened(**options)
    assert eventually(lambda: consumer.assignment() == [KEY])
    return consumer


def test_back_forth_and_to_both_ends(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    assert drain(consumer, 4) == [b"0", b"1", b"2", b"3"]
    assert consumer.seek(KEY, INDEX) == INDEX
    assert drain(consumer, 2) == [b"1", b"2"]
    assert consumer.seek(KEY, 5 * INDEX) == 5 * INDEX
    assert drain(consumer, 1) == [b"5"]
    assert consumer.seek(KEY, np.int64(2 * INDEX)) == 2 * INDEX  # as a column of a table has it
    assert drain(consumer, 1) == [b"2"]
    assert consumer.seek(KEY, "earliest") == 0
    assert drain(consumer, 1) == [b"0"]
    assert consumer.seek(KEY, "latest") == 6 * INDEX
    tube.put("one", b"new")
    assert drain(consumer, 1) == [b"new"]
    assert (consumer.assignment(), balanced(consumer.stats().packs)) == ([KEY], True)


def test_the_groups_offset_moves_at_once(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    drain(consumer, 4)
    consumer.seek(KEY, 2 * INDEX)
    assert tube.confirmed("g", "one", 0) == 2 * INDEX
    consumer.close()
    assert drain(opened(), 1) == [b"2"]


def test_packs_of_the_old_place_end(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    out = next_pack(consumer)
    consumer.seek(KEY, 3 * INDEX)
    assert (out.outcome, out.code) == ("expired", -5)
    with pytest.raises(ConfirmError) as caught:
        out.confirm()
    assert caught.value.code == "CONFIRM_SOUGHT"
    assert next_pack(consumer).bodies() == [b"3"]
    stats = consumer.stats()
    assert (stats.packs.expired, stats.packs.held, balanced(stats.packs)) == (1, 1, True)


def test_a_pack_that_waits_is_given_back(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    assert eventually(lambda: consumer.stats().packs.held == 1)
    consumer.seek(KEY, 3 * INDEX)
    assert drain(consumer, 1) == [b"3"]
    assert consumer.stats().packs.rolled_back == 1


def test_a_confirm_before_a_seek_counts(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    out = next_pack(consumer)
    out.confirm(wait=False)
    consumer.seek(KEY, 5 * INDEX)
    assert (out.outcome, next_pack(consumer).bodies()) == ("confirmed", [b"5"])


def test_the_rest_of_a_pack_is_not_given_out_record_by_record(tube: TubeServer, opened: Opener) -> None:
    for i in range(5):
        tube.put("one", b"%d" % i)
    consumer = opened()
    records = consumer.records()
    assert [next(records).body for _ in range(2)] == [b"0", b"1"]
    consumer.seek(KEY, 4 * INDEX)
    assert next(records).body == b"4"


def test_an_answer_of_the_old_place_is_not_given_out(tube: TubeServer, opened: Opener) -> None:
    """The broker is slow with a pack, and the seek comes while it is."""
    filled(tube)
    go = threading.Event()
    tube.on(GET, ("hold", go))
    consumer = opened()
    assert eventually(lambda: tube.held == 1)
    asked: list[int] = []
    seeking = threading.Thread(target=lambda: asked.append(consumer.seek(KEY, 4 * INDEX)))
    seeking.start()
    go.set()
    seeking.join(SECONDS)
    assert asked == [4 * INDEX]
    assert drain(consumer, 2) == [b"4", b"5"]


def test_positions_and_lags_tell_the_new_place(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    drain(consumer, 1)
    consumer.pause()
    consumer.seek(KEY, 3 * INDEX)
    assert consumer.position() == {KEY: 3 * INDEX}
    assert consumer.poll(0.05) is None  # it is still paused
    consumer.resume()
    assert next_pack(consumer).bodies() == [b"3"]
    assert consumer.lag()[KEY].messages == 3


def test_a_pause_while_a_partition_is_sought(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    go = threading.Event()
    tube.on(REGISTER, ("hold", go))
    seeking = threading.Thread(target=lambda: consumer.seek(KEY, "earliest"))
    seeking.start()
    assert eventually(lambda: tube.held == 1)
    assert (consumer.assignment(), consumer.position()) == ([KEY], {})
    consumer.pause(KEY)
    go.set()
    seeking.join(SECONDS)
    assert consumer.poll(0.05) is None
    consumer.resume(KEY)
    assert next_pack(consumer).bodies() == [b"0"]


def test_what_was_deleted_begins_at_the_oldest(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    tube.trim("one", 3 * INDEX)
    consumer = reading(tube, opened)
    assert consumer.seek(KEY, INDEX) == 3 * INDEX
    assert drain(consumer, 1) == [b"3"]


def test_what_is_behind_the_end(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    drain(consumer, 2)
    with pytest.raises(SeekError) as caught:
        consumer.seek(KEY, 7 * INDEX)
    error = caught.value
    assert (error.code, error.details["end"], error.details["offset"]) == ("SEEK_BEYOND", 6 * INDEX, 2 * INDEX)
    assert drain(consumer, 1) == [b"2"]  # nothing has moved
    assert consumer.seek(KEY, 6 * INDEX) == 6 * INDEX


@pytest.mark.parametrize("wrong", [-28, 1, 27, 2**63, True, 0.0, "0", "end", None, b"", [28]])
def test_what_is_no_place(tube: TubeServer, opened: Opener, wrong: Any) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    out = next_pack(consumer)
    with pytest.raises(ConfigError, match="offset") as caught:
        consumer.seek(KEY, wrong)
    assert caught.value.code == "OFFSET"
    out.confirm()


@pytest.mark.parametrize("wrong", ["1:one:1", "", None, 0, ["1:one:0"]])
def test_partitions_that_are_not_assigned(opened: Opener, wrong: Any) -> None:
    consumer = opened()
    assert eventually(consumer.assignment)
    with pytest.raises(ConfigError, match="not assigned"):
        consumer.seek(wrong, 0)


def test_nobody_is_told_of_a_revocation(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    told: list[tuple[Any, ...]] = []
    consumer = opened(
        on_assigned=lambda key: told.append((key,)), on_revoked=lambda key, lost: told.append((key, lost))
    )
    next_pack(consumer)
    consumer.seek(KEY, "latest")
    consumer.close()
    assert eventually(lambda: len(told) == 2)
    assert told == [(KEY,), (KEY, False)]


def test_a_seek_in_on_assigned(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    done = threading.Event()
    held: list[Consumer] = []
    ready = threading.Event()

    def on_assigned(key: str) -> None:
        ready.wait(SECONDS)
        held[0].seek(key, 5 * INDEX)
        done.set()

    held.append(opened(on_assigned=on_assigned))
    ready.set()
    assert done.wait(SECONDS)
    assert drain(held[0], 1) == [b"5"]


def test_a_broker_that_is_gone_while_a_partition_is_sought(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    tube.on(REGISTER, "drop")
    found: list[Any] = []

    def seek() -> None:
        try:
            found.append(consumer.seek(KEY, 4 * INDEX))
        except SeekError as error:
            found.append(error.code)

    seeking = threading.Thread(target=seek)
    seeking.start()
    assert eventually(lambda: [call.method for call in tube.calls].count(REGISTER) == 2)
    tube.stop_broker()
    tube.start_broker()
    seeking.join(SECONDS)
    assert found == [4 * INDEX]
    assert drain(consumer, 1) == [b"4"]


def test_a_registration_that_another_reader_has_ends_a_seek(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    lost: list[bool] = []
    consumer = reading(tube, opened, on_revoked=lambda _, was: lost.append(was))
    tube.on(REGISTER, ("code", 403, "closed"))
    with pytest.raises(SeekError) as caught:
        consumer.seek(KEY, 0)
    assert caught.value.code == "SEEK_REVOKED"
    assert eventually(lambda: lost == [True])
    assert drain(consumer, 1) == [b"0"]  # the master gives it again


def test_threads_that_seek_at_once(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    ends: list[Any] = []
    begin = threading.Barrier(4)

    def seek(offset: int) -> None:
        begin.wait(SECONDS)
        for _ in range(10):
            try:
                ends.append(consumer.seek(KEY, offset))
            except SeekError as error:
                ends.append(error.code)

    threads = [threading.Thread(target=seek, args=(i * INDEX,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(ends) == 40
    assert set(ends) <= {0, INDEX, 2 * INDEX, 3 * INDEX, "SEEK"}
    assert consumer.seek(KEY, 5 * INDEX) == 5 * INDEX
    assert drain(consumer, 1) == [b"5"]
    assert balanced(consumer.stats().packs)


def test_a_seek_between_polls_of_other_threads_gives_only_the_new_place(tube: TubeServer, opened: Opener) -> None:
    filled(tube, 60)
    consumer = reading(tube, opened)
    found: list[bytes] = []
    moved = threading.Event()

    def read() -> None:
        while not moved.is_set() or not found:
            fresh = moved.is_set()
            pack = consumer.poll(0.1)
            if pack is not None and fresh:
                found.append(pack.bodies()[0])
            if pack is not None:
                with contextlib.suppress(ConfirmError):
                    pack.confirm()

    thread = threading.Thread(target=read)
    thread.start()
    assert eventually(lambda: consumer.stats().packs.confirmed > 3)
    consumer.seek(KEY, 59 * INDEX)
    moved.set()
    assert eventually(lambda: (tube.put("one", b"next"), found)[1])
    thread.join(SECONDS)
    assert set(found) <= {b"59", b"next"}


def test_after_close_and_while_it_closes(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = reading(tube, opened)
    go = threading.Event()
    tube.on(REGISTER, ("hold", go))
    raised: list[Exception] = []

    def seek() -> None:
        try:
            consumer.seek(KEY, 0)
        except (SeekError, ClosedError) as error:
            raised.append(error)

    thread = threading.Thread(target=seek)
    thread.start()
    assert eventually(lambda: tube.held == 1)
    closing = threading.Thread(target=consumer.close)
    closing.start()
    thread.join(SECONDS)
    go.set()
    closing.join(SECONDS)
    assert len(raised) == 1
    with pytest.raises(ClosedError):
        consumer.seek(KEY, 0)
    assert tube.owner("g", "one", 0) is None


def test_in_a_forked_child(tube: TubeServer, opened: Opener) -> None:
    consumer = reading(tube, opened)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            consumer.seek(KEY, 0)
        except ForkedError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def test_in_a_loop(tube: TubeServer) -> None:
    filled(tube)

    async def main() -> list[Any]:
        async with AsyncConsumer(tube.target, group="g", topics=["one"], not_found_wait=0.02) as consumer:
            pack = await consumer.poll(SECONDS)
            assert pack is not None
            found: list[Any] = [await consumer.seek(KEY, 4 * INDEX)]
            pack = await consumer.poll(SECONDS)
            assert pack is not None
            found.append(pack.bodies())
            with pytest.raises(SeekError):
                await consumer.seek(KEY, 100 * INDEX)
            with pytest.raises(ConfigError):
                await consumer.seek(KEY, 1)
            await pack_after(consumer)
            go = threading.Event()
            tube.on(REGISTER, ("hold", go))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.seek(KEY, 2 * INDEX), 0.05)
            go.set()  # the seek goes on
            pack = await consumer.poll(SECONDS)
            assert pack is not None
            found.append(pack.bodies())
            return found

    async def pack_after(consumer: AsyncConsumer) -> None:
        pack = await consumer.poll(SECONDS)
        assert pack is not None
        await pack.confirm()

    with quick_members():
        assert asyncio.run(main()) == [4 * INDEX, [b"4"], [b"2"]]


def test_a_lost_connection_is_logged_with_its_broker(
    tube: TubeServer, opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tube)
    with caplog.at_level("WARNING", logger="dataproxy.consumer"):
        tube.on(GET, "close", times=3)
        consumer = opened()
        drain(consumer, 1)
    told = [record.getMessage() for record in caplog.records if "has not answered" in record.getMessage()]
    assert told == [f"broker 127.0.0.1:{tube.broker_port} has not answered about partition {KEY}: the connection ended"]
    assert COMMIT in {call.method for call in tube.calls}


def test_seeks_while_partitions_come_and_go(tube: TubeServer, opened: Opener) -> None:
    """Every seek has an end, and what it leaves behind is a group that reads everything."""
    for i in range(30):
        tube.put("group", b"%d" % i, partition=i % 6)
    first = opened("group")
    assert eventually(lambda: len(first.assignment()) == 6)
    ends: list[str] = []
    stop = threading.Event()

    def seek(number: int) -> None:
        places: list[Any] = ["earliest", "latest", 0, INDEX * number]
        for i in range(10_000):
            if stop.is_set():
                return
            for key in first.assignment()[number::2]:
                try:
                    first.seek(key, places[i % 4])
                    ends.append("done")
                except (SeekError, ConfigError) as error:
                    ends.append(error.code)

    threads = [threading.Thread(target=seek, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        members = [first, opened("group")]
        assert eventually(lambda members=members: all(one.assignment() for one in members))
        tube.cut()
        members[1].close()
        tube.stop_broker()
        tube.start_broker()
    stop.set()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert "done" in ends
    assert set(ends) <= {"done", "SEEK", "SEEK_REVOKED", "SEEK_BEYOND", "CONFIG"}
    assert eventually(lambda: len(first.assignment()) == 6)
    for key in first.assignment():
        first.seek(key, "earliest")
    assert set(drain(first, 30, distinct=True)) == {b"%d" % i for i in range(30)}
    stats = first.stats()
    assert balanced(stats.packs)
    assert stats.packs.held <= 6
