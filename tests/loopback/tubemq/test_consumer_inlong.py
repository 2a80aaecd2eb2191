"""InLong's records of a consumer, one by one, and those that come twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dataproxy import AsyncConsumer, SeenRecords, inlong_records
from dataproxy._core.wire.inlong import message
from dataproxy.errors import ConfigError, ConfirmError, LocalProtocolError, RemoteProtocolError
from tests.support.consumers import COMMIT, Opener, next_pack, quick_members
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually


def container(*ids: str) -> bytes:
    records = [({"groupId": "g", "streamId": "s", "msgid": one}, [one.encode()]) for one in ids]
    return message.encode(1, records)


def test_a_record_whose_confirm_was_lost_is_given_once(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    tube.put("one", container("a", "b"))
    tube.put("one", container("c"))
    tube.on(COMMIT, "close")  # it has no effect, and nobody hears of it
    consumer, seen = opened(), SeenRecords()
    pack = next_pack(consumer)
    assert [one.message_id for one in inlong_records(pack, dedupe=seen)] == ["a", "b"]
    with pytest.raises(ConfirmError):
        consumer.confirm(pack)
    found: list[str] = []
    while "c" not in found:
        pack = next_pack(consumer)
        found += [one.message_id for one in inlong_records(pack, dedupe=seen)]
        pack.confirm()
    assert (found, seen.duplicates) == (["c"], 2)


@pytest.mark.parametrize("late", [False, True])
def test_what_was_given_back_is_given_again(tube: TubeServer, opened: Opener, late: bool) -> None:
    tube.put("one", container("a"))
    consumer, seen = opened(), SeenRecords()
    pack = next_pack(consumer)
    assert len(list(inlong_records(pack, dedupe=seen))) == 1
    pack.rollback()
    if late:
        with pytest.raises(LocalProtocolError):
            pack.confirm()
    assert not pack.done
    assert [one.message_id for one in inlong_records(next_pack(consumer), dedupe=seen)] == ["a"]


def test_a_confirm_that_is_too_late_says_that_it_was_done(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", container("a"))
    consumer, seen = opened(), SeenRecords()
    pack = next_pack(consumer)
    list(inlong_records(pack, dedupe=seen))
    consumer.seek("1:one:0", "earliest")  # it expires
    for _ in range(2):
        with pytest.raises(ConfirmError):
            pack.confirm()
    assert pack.done
    assert list(inlong_records(next_pack(consumer), dedupe=seen)) == []


def test_records_one_by_one(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for text in ("a", "b"):
        tube.put("one", container(text, text + text))
    tube.put("one", b"nothing")
    tube.put("one", container("a"))
    tube.put("one", container("c"))
    wrong: list[Any] = []
    consumer = opened()
    records = consumer.inlong_records(lambda one, error: wrong.append((one.body, error.details)), dedupe=SeenRecords())
    assert [next(records).body for _ in range(5)] == [b"a", b"aa", b"b", b"bb", b"c"]
    assert [body for body, _ in wrong] == [b"nothing"]
    assert wrong[0][1]["partition"] == "1:one:0"
    assert eventually(lambda: tube.confirmed("g", "one", 0) == 4 * 28)


def test_a_malformed_one_without_a_callback(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"nothing")
    with pytest.raises(RemoteProtocolError, match="is no container"):
        next(opened().inlong_records())
    assert tube.confirmed("g", "one", 0) == 0


def test_arguments_that_are_none(tube: TubeServer, opened: Opener) -> None:
    """They are refused at once, not when the first record is asked for."""
    tube.put("one", container("a"))
    consumer = opened()
    pack = next_pack(consumer)
    for wrong in (None, 5, [], b"x", pack[0]):
        with pytest.raises(LocalProtocolError, match="no pack"):
            inlong_records(wrong)  # type: ignore[arg-type]
    for wrong in (5, "x", []):
        with pytest.raises(ConfigError, match="on_malformed"):
            inlong_records(pack, wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="on_malformed"):
            consumer.inlong_records(wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="SeenRecords"):
            inlong_records(pack, dedupe=wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="SeenRecords"):
            consumer.inlong_records(dedupe=wrong)  # type: ignore[arg-type]

    async def asynchronous() -> None:
        async with AsyncConsumer(tube.target, group="other", topics="one", not_found_wait=0.02) as awaited:
            with pytest.raises(ConfigError, match="on_malformed"):
                awaited.inlong_records(5)  # type: ignore[arg-type]

    asyncio.run(asynchronous())


def test_in_a_loop(tube: TubeServer) -> None:
    tube.settings.pack_bytes = 1
    for text in ("a", "b", "a", "c"):
        tube.put("one", container(text))

    async def main() -> list[bytes]:
        found: list[bytes] = []
        async with AsyncConsumer(tube.target, group="g", topics=["one"], not_found_wait=0.02) as consumer:
            async with asyncio.timeout(SECONDS):
                async for record in consumer.inlong_records(dedupe=SeenRecords()):
                    found.append(record.body)
                    if record.body == b"c":
                        return found
        return found

    with quick_members():
        assert asyncio.run(main()) == [b"a", b"b", b"c"]
