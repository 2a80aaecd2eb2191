"""A short run of what `make test-hubkills` does for long, and that its judge would see what it looks for."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.campaigns.histories.bodies import make_body
from tests.campaigns.hubkills.rounds import Rounds
from tests.campaigns.readers.reading import INDEX, Log, Reading

LOG = Log("h", "t", 0)


def test_killed_hubs_lose_no_confirmed_offset_and_no_message(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, 7)
    rounds.run(2)
    assert rounds.problems == []
    assert rounds.kills == 2
    assert 0 < rounds.delivered <= rounds.stored
    assert rounds.reading.outcomes["confirmed"] > 2


class Pack(NamedTuple):
    """Some messages of one partition."""

    offset: int
    sent: list[bytes]
    topic: str = "t"
    partition: str = "1:t:0"

    def bodies(self) -> list[bytes]:
        """Return the messages."""
        return self.sent

    def __len__(self) -> int:
        return len(self.sent)


def bodies(*numbers: int) -> list[bytes]:
    return [make_body("p", i, size=60) for i in numbers]


@pytest.fixture
def reading() -> Reading:
    """Two messages were read and confirmed."""
    one = Reading(raw=["t"])
    log, end = one.taken("h", Pack(0, bodies(0, 1)))
    one.asks(log, end)
    one.ended(log, end, "confirmed")
    one.compare({LOG: 2 * INDEX})
    assert (log, end, one.left_over({LOG: end})) == (LOG, 2 * INDEX, "")
    assert one.judge({("p", 0), ("p", 1)}) == []
    return one


def test_messages_that_nobody_saw_are_noticed(reading: Reading) -> None:
    assert reading.left_over({LOG: 3 * INDEX})
    assert [one[:2] for one in reading.judge({("p", 0), ("p", 1), ("p", 2)})] == ["R1"]


def test_confirmed_messages_that_come_again_are_noticed(reading: Reading) -> None:
    reading.taken("h", Pack(INDEX, bodies(1)))
    assert [one[:2] for one in reading.problems] == ["R2"]
    assert reading.again == 1


@pytest.mark.parametrize("stored", [{}, {LOG: INDEX}, {LOG: 3 * INDEX}])
def test_offsets_that_are_lost_or_that_nobody_confirmed_are_noticed(reading: Reading, stored: dict[Log, int]) -> None:
    reading.compare(stored)
    assert [one[:2] for one in reading.problems] == ["R3"]


@pytest.mark.parametrize("body", [b"nothing", bodies(2)[0][:-1] + b"#"])
def test_bodies_that_nobody_sent_are_noticed(reading: Reading, body: bytes) -> None:
    reading.taken("h", Pack(2 * INDEX, [body]))
    assert [one[:2] for one in reading.problems] == ["R4"]


def test_messages_that_are_not_stored_are_noticed(reading: Reading) -> None:
    assert [one[:2] for one in reading.judge({("p", 0)})] == ["R4"]


def test_messages_that_are_passed_over_are_noticed(reading: Reading) -> None:
    reading.taken("h", Pack(3 * INDEX, bodies(3)))
    assert [one[:2] for one in reading.problems] == ["R5"]


def test_two_owners_are_noticed(reading: Reading) -> None:
    reading.assigned("a", LOG)
    reading.revoked("a", LOG)
    reading.assigned("b", LOG)
    assert not reading.problems
    reading.assigned("a", LOG)
    assert [one[:2] for one in reading.problems] == ["R6"]
