"""The judge of histories is judged: each law is broken once by hand, and every honest history passes."""

from __future__ import annotations

import pytest

from tests.campaigns.histories.bodies import make_body, read_body
from tests.campaigns.histories.history import Accounting, Close, Dip, History, Idle, Result, Stored, Told
from tests.campaigns.histories.laws import judge


def told(sequence: int, outcome: str = "delivered", *, key: str = "", at: float = 1.0, maybe: bool = False) -> Told:
    result = Result(outcome, at + 0.01, maybe, f"id-{sequence}")
    return Told("p", sequence, key, 1000 + sequence, at, (result,), True, "s", 5.0)


def stored(sequence: int, offset: int, *, key: str = "", log: str = "a", at: float = 1.0, **other: object) -> Stored:
    copy = Stored("p", sequence, key, 1000 + sequence, True, log, (offset, 0), at, f"id-{sequence}", "s")
    return copy._replace(**other)


def laws(history: History) -> list[str]:
    return [violation.law for violation in judge(history)]


def good() -> History:
    return History(
        told=[told(1), told(2, key="k"), told(3, key="k"), told(4, "failed", maybe=True), told(5, "expired"),
              told(6, "dropped")],
        stored=[stored(1, 0), stored(2, 1, key="k"), stored(3, 2, key="k"), stored(4, 3), stored(1, 4, at=9.0)],
        accounting=[Accounting("p", 1.0, 6, 0, 0, 0, 0, 6, 100, 200),
                    Accounting("p", 9.0, 6, 3, 1, 1, 1, 0, 0, 200, True)],
        closes=[Close("p", 2.0, 2.5, 1.0)],
        dips=[Dip(1.0, 3.9)],
        idle=[Idle(10.0, 0.05)],
        most_duplicates=1,
    )  # fmt: skip


def test_an_honest_history_passes() -> None:
    assert judge(good()) == []


def test_accounting_that_does_not_balance() -> None:
    history = good()
    history.accounting[0] = history.accounting[0]._replace(pending=5)
    assert laws(history) == ["S1"]


def test_accounting_that_counts_other_than_their_callers() -> None:
    history = good()
    history.accounting[1] = history.accounting[1]._replace(delivered=4, failed=0)
    assert laws(history) == ["S1", "S1"]
    history.accounting[1] = history.accounting[1]._replace(accepted=7, failed=1)
    assert "S1" in laws(history)


def test_messages_without_a_watcher_count_with_any_outcome() -> None:
    history = good()
    history.told[0] = history.told[0]._replace(results=(), watched=False)
    assert judge(history) == []


@pytest.mark.parametrize("results", [(), (Result("delivered", 1.0, id="id-1"), Result("failed", 1.1))])
def test_no_result_or_two(results: tuple[Result, ...]) -> None:
    history = good()
    history.told[0] = history.told[0]._replace(results=results)
    assert "S2" in laws(history)


def test_delivered_and_lost() -> None:
    history = good()
    history.stored = [copy for copy in history.stored if copy.sequence != 3]
    assert laws(history) == ["S3"]


@pytest.mark.parametrize("change", [{"digest": 7}, {"intact": False}, {"key": "other"}, {"stream": "t"}])
def test_stored_with_other_bytes(change: dict[str, object]) -> None:
    history = good()
    history.stored[1] = history.stored[1]._replace(**change)
    assert "S3" in laws(history)


@pytest.mark.parametrize("outcome", ["failed", "expired", "dropped"])
def test_surely_not_delivered_and_stored(outcome: str) -> None:
    history = good()
    history.told[3] = told(4, outcome)
    history.accounting.clear()
    assert laws(history) == ["S3"]


def test_stored_and_never_accepted() -> None:
    history = good()
    history.stored.append(stored(77, 9))
    assert laws(history) == ["S3"]


def test_foreign_bodies() -> None:
    history = good()
    history.foreign = 1
    assert laws(history) == ["S3"]


def test_more_copies_than_were_in_flight() -> None:
    history = good()
    history.stored.append(stored(2, 6, key="k", at=9.0))
    assert laws(history) == ["S3"]


def test_more_frames_than_were_sent_again() -> None:
    history = good()
    history.extra_frames, history.resent_frames = 3, 3
    assert laws(history) == []
    history.extra_frames = 4
    assert laws(history) == ["S3"]


def test_reordered_in_one_log() -> None:
    history = good()
    history.stored[1], history.stored[2] = stored(2, 2, key="k"), stored(3, 1, key="k")
    assert laws(history) == ["S4"]


def test_reordered_over_two_hubs() -> None:
    history = good()
    history.stored[1] = stored(2, 1, key="k", log="b", at=2.0)
    assert laws(history) == ["S4"]
    history.stored[1] = stored(2, 1, key="k", log="b", at=1.0)
    assert laws(history) == [], "the same moment says nothing"


def test_the_first_copy_counts_and_only_of_what_was_delivered() -> None:
    history = good()
    history.most_duplicates = None
    history.stored.append(stored(2, 8, key="k", log="b", at=7.0))
    assert laws(history) == [], "a later copy of the earlier message"
    history.told.append(told(7, "failed", key="k", maybe=True))
    history.stored.append(stored(7, 0, key="k", log="c", at=0.5))
    history.accounting.clear()
    assert laws(history) == [], "it was not reported delivered"


def test_bytes_after_close() -> None:
    history = good()
    history.closes[0] = history.closes[0]._replace(written_after=3)
    assert laws(history) == ["S5"]


def test_accepted_after_close() -> None:
    history = good()
    history.told[0] = told(1, at=2.6)
    assert laws(history) == ["S5"]


def test_over_the_limit_of_memory() -> None:
    history = good()
    history.accounting[0] = history.accounting[0]._replace(buffered=201)
    assert laws(history) == ["S6"]


def test_bytes_that_are_never_released() -> None:
    history = good()
    history.accounting[1] = history.accounting[1]._replace(buffered=1)
    assert laws(history) == ["S6"]


def test_one_id_for_two_contents() -> None:
    history = good()
    history.stored[1] = history.stored[1]._replace(id="id-1")
    assert "S7" in laws(history)


def test_several_ids_of_one_message() -> None:
    history = good()
    history.stored[4] = history.stored[4]._replace(id="id-1b")
    assert laws(history) == ["S7"]


def test_an_id_that_the_hub_does_not_have() -> None:
    history = good()
    history.told[0] = history.told[0]._replace(results=(Result("delivered", 1.0, id="other"),))
    assert laws(history) == ["S7"]


def test_a_late_result() -> None:
    history = good()
    history.told[0] = history.told[0]._replace(results=(Result("delivered", 6.3, id="id-1"),))
    assert laws(history) == ["L1"]


@pytest.mark.parametrize("recovered", [None, 4.1])
def test_a_rate_that_does_not_come_back(recovered: float | None) -> None:
    history = good()
    history.dips = [Dip(1.0, recovered)]
    assert laws(history) == ["L2"]


def test_a_close_that_does_not_end() -> None:
    history = good()
    history.closes = [Close("p", 2.0, 4.1, 1.0)]
    assert laws(history) == ["L3"]


def test_idle_and_busy() -> None:
    history = good()
    history.idle = [Idle(10.0, 0.2)]
    assert laws(history) == ["L4"]


def test_many_violations_of_one_law_are_cut_short() -> None:
    history = good()
    history.stored.clear()
    history.told += [told(n) for n in range(10, 60)]
    history.accounting.clear()
    found = judge(history)
    assert len(found) == 6 and found[-1].text == "and more"


@pytest.mark.parametrize("size", [0, 1, 60, 500])
@pytest.mark.parametrize("key", ["", "k7"])
def test_bodies_say_what_they_are(size: int, key: str) -> None:
    body = make_body("p1", 42, key, size)
    assert len(body) >= size
    said = read_body(body)
    assert said is not None and said[:3] == ("p1", 42, key) and said.intact
    for at in range(len(body)):
        broken = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        other = read_body(broken)
        assert other is None or not other.intact or other[:3] != said[:3], at


def test_foreign_bodies_are_not_read() -> None:
    for body in (b"", b"hello", b"a b c d e", b"p 1 k 1234567z rest", b"\xff 1 - 00000000 "):
        assert read_body(body) is None
