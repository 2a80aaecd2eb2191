"""Records that come twice: which are left out, which are given again, and what is remembered."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dataproxy import SeenRecords, inlong_records
from dataproxy._core.wire.inlong import message
from dataproxy.errors import ConfigError


class Message:
    """A message of a pack."""

    def __init__(self, index: int, body: bytes) -> None:
        self.index, self.body, self.id = index, body, 7


class Pack(list[Any]):
    """A pack, as far as it is looked at."""

    topic, partition, offset = "t", "1:t:0", 280
    done, outcome = False, "held"

    def confirmed(self) -> None:
        self.done, self.outcome = True, "confirmed"


def pack_of(*ids: str, group: str = "g", stream: str = "s") -> Any:
    """Return a pack with a record for each id."""
    attrs = [{"groupId": group, "streamId": stream, **({"msgid": one} if one else {})} for one in ids]
    return Pack(Message(i, message.encode(1, [(one, [b"x"])])) for i, one in enumerate(attrs))


def given(pack: Any, seen: SeenRecords) -> list[str]:
    return [one.message_id for one in inlong_records(pack, dedupe=seen)]


def test_what_was_done_with_is_left_out() -> None:
    seen = SeenRecords()
    first = pack_of("a", "b")
    assert given(first, seen) == ["a", "b"]
    first.confirmed()
    assert given(pack_of("b", "c", "a"), seen) == ["c"]
    assert (seen.duplicates, len(seen)) == (2, 2)


def test_a_confirm_that_is_asked_for_too_late_counts_though_other_packs_came_meanwhile() -> None:
    seen = SeenRecords()
    first = pack_of("a")
    given(first, seen)
    first.outcome = "expired"
    assert given(pack_of("b"), seen) == ["b"]  # of another thread
    first.done = True
    assert given(pack_of("a", "c"), seen) == ["c"]


def test_packs_that_expired_are_not_kept_for_ever() -> None:
    seen = SeenRecords()
    packs = [pack_of(f"id-{i}") for i in range(100)]
    for pack in packs:
        given(pack, seen)
        pack.outcome = "expired"
    assert len(seen) == 0
    assert len(seen._open) == 16


def test_records_that_are_given_out_behind_the_confirm_of_their_pack_count_at_once() -> None:
    seen = SeenRecords()
    first = pack_of("a", "b")
    records = inlong_records(first, dedupe=seen)
    assert next(records).message_id == "a"
    first.confirmed()
    assert given(pack_of("x"), seen) == ["x"]
    assert [one.message_id for one in records] == ["b"]
    assert given(pack_of("a", "b"), seen) == []


def test_twice_in_one_pack() -> None:
    seen = SeenRecords()
    assert given(pack_of("a", "b", "a"), seen) == ["a", "b"]


@pytest.mark.parametrize("outcome", ["rolled_back", "expired", "held"])
def test_what_was_not_done_with_is_given_again(outcome: str) -> None:
    seen = SeenRecords()
    first = pack_of("a")
    given(first, seen)
    first.outcome = outcome
    assert given(pack_of("a"), seen) == ["a"]
    assert seen.duplicates == 0


def test_a_confirm_that_did_not_count_was_done_with() -> None:
    seen = SeenRecords()
    first = pack_of("a")
    given(first, seen)
    first.done, first.outcome = True, "expired"
    assert given(pack_of("a"), seen) == []


def test_what_was_not_given_out_is_not_remembered() -> None:
    seen = SeenRecords()
    first = pack_of("a", "b")
    assert next(inlong_records(first, dedupe=seen)).message_id == "a"
    first.confirmed()
    assert given(pack_of("a", "b"), seen) == ["b"]


def test_ids_belong_to_their_stream() -> None:
    seen = SeenRecords()
    first = pack_of("a")
    given(first, seen)
    first.confirmed()
    assert given(pack_of("a", stream="t"), seen) == ["a"]
    assert given(pack_of("a", group="h"), seen) == ["a"]
    assert given(pack_of("a", group="gs", stream=""), seen) == ["a"]


def test_records_without_an_id_are_always_given() -> None:
    seen = SeenRecords()
    first = pack_of("", "")
    assert given(first, seen) == ["", ""]
    first.confirmed()
    assert given(pack_of(""), seen) == [""]
    assert len(seen) == 0


def test_what_is_remembered_is_bounded() -> None:
    seen = SeenRecords(10)
    for i in range(100):
        pack = pack_of(f"{i}")
        given(pack, seen)
        pack.confirmed()
        assert len(seen) <= 20
    assert given(pack_of(*(f"{i}" for i in range(90, 100))), seen) == []
    assert given(pack_of("0"), seen) == ["0"]


def test_nothing_is_kept_of_packs_that_have_their_end() -> None:
    seen = SeenRecords()
    packs = [pack_of(f"{i}") for i in range(3)]
    for pack in packs:
        given(pack, seen)
    packs[0].confirmed()
    packs[1].outcome = "rolled_back"
    assert len(seen) == 1
    assert [one.pack for one in seen._open] == [packs[2]]
    seen.clear()
    assert (len(seen), seen._open) == (0, [])


def test_threads() -> None:
    seen = SeenRecords()
    found: list[str] = []

    def read(part: int) -> None:
        for i in range(50):
            pack = pack_of(f"{part}-{i}")
            found.extend(given(pack, seen))
            pack.confirmed()

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(seen), seen.duplicates) == (200, 200, 0)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "10", None, 1 << 33])
def test_what_is_no_number(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="is no number of records"):
        SeenRecords(wrong)
