"""Partitions call by call: what is asked for, when, and what becomes of packs."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.wire.tubemq.flow import EmptyRule, FlowRules, Pace
from tests.native.probe_fetch import Reader, hold_of
from tests.native.probe_tubemq import exception, frame
from tests.support.fetching import COMMIT, GET, Bench, committed, got, message, refused

NONE = FlowRules()
#: What pack.code says of this side's reasons.
LATE, REVOKED, UNANSWERED, CLOSED = -1, -2, -3, -4
HEADS = 20000  # more than a pack has besides its bytes


def next_get(bench: Bench) -> int:
    """Return the ms until the next pack is asked for."""
    due = bench.reader.due()
    assert due is not None
    assert due % 1000 == 0
    assert bench.requests() == []
    bench.reader.now += due - 1
    assert bench.requests() == []
    bench.reader.now += 1
    assert [one.method for one in bench.requests()] == [GET]
    return int(due) // 1000


def ended(pack: Any) -> tuple[str, int]:
    return pack.outcome, pack.code


def test_from_hold_to_the_next_pack() -> None:
    bench = Bench()
    reader = bench.reader
    assert (reader.state(1), reader.connection("a")[0], reader.asked) == ("asked", "wanted", 1)
    first = bench.request()
    assert (first.fields["clientId"], first.fields["groupName"], first.fields["topicName"]) == (b"c-1", b"g", b"t")
    assert (first.partition, first.fields["lastPackConsumed"], first.fields["manualCommitOffset"]) == (1, False, False)
    bench.answer(first, got([b"one", b"two"], currOffset=56, maxOffset=560, currDataDlt=9))
    assert (reader.state(1), reader.ready, reader.asked) == ("ready", 1, 0)
    assert reader.offsets(1) == (56, 560, 9)
    pack = reader.take()
    assert (pack.bodies(), pack.offset, pack.max_offset, hold_of(pack)) == ([b"one", b"two"], 56, 560, 1)
    assert reader.take() is None
    assert bench.requests() == []
    reader.confirm(pack)
    assert (reader.state(1), pack.outcome) == ("confirming", "held")
    commit, ahead = bench.requests()
    assert (commit.method, ahead.method, bench.writes[-1]) == (COMMIT, GET, [COMMIT, GET])
    assert (commit.fields["lastPackConsumed"], commit.fields["clientId"], commit.partition) == (True, b"c-1", 1)
    assert not ahead.fields["lastPackConsumed"]
    bench.answer(commit, committed(offset=112, most=616))
    assert (reader.state(1), ended(pack)) == ("asked", ("confirmed", 0))
    assert reader.offsets(1)[:2] == (112, 616)
    bench.answer(ahead, got([b"three"], currOffset=112))
    assert reader.take().bodies() == [b"three"]
    assert reader.tally()[0] == [2, 1, 0, 0]
    assert reader.tally()[1] == [3, 2, 0, 0]


def test_a_pack_that_is_rolled_back_comes_again() -> None:
    bench = Bench()
    pack = bench.give(b"one")
    bench.reader.rollback(pack)
    assert (bench.reader.state(1), ended(pack)) == ("idle", ("rolled_back", 0))
    again = bench.request()
    assert not again.fields["lastPackConsumed"]
    bench.reader.confirm(pack)  # too late: nothing
    assert ended(pack) == ("rolled_back", 0)
    assert bench.requests() == []


def test_nothing_ahead_when_paused() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.pause(1)
    bench.reader.confirm(pack)
    bench.answer(bench.request(COMMIT), committed())
    assert (bench.reader.state(1), bench.requests()) == ("frozen", [])
    bench.reader.resume(1)
    assert bench.request().method == GET


def test_nothing_ahead_when_it_is_given_back() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.release(1, 5)
    bench.reader.confirm(pack)
    bench.answer(bench.request(COMMIT), committed())
    assert (bench.reader.state(1), ended(pack)) == (None, ("confirmed", 0))
    assert bench.reader.events() == [("released", 1, 0, 0, b"", b"")]


def test_nothing_ahead_with_a_wait_by_the_rules_which_is_measured_from_the_fetch() -> None:
    bench = Bench()
    bench.reader.rules(FlowRules(pace=Pace(100, 200, 400)), NONE)
    first = bench.give()
    bench.reader.sleep(0.03)
    bench.reader.confirm(first)
    commit = bench.request(COMMIT)
    bench.reader.sleep(0.02)
    bench.answer(commit, committed())
    assert (bench.reader.state(1), next_get(bench)) == ("delayed", 50)


def test_ahead_when_the_wait_is_over() -> None:
    bench = Bench()
    bench.reader.rules(FlowRules(pace=Pace(100, 200, 400)), NONE)
    pack = bench.give()
    bench.reader.sleep(0.1)
    bench.reader.confirm(pack)
    assert [one.method for one in bench.requests()] == [COMMIT, GET]


def test_a_pack_that_is_given_back_waits_as_well() -> None:
    bench = Bench()
    bench.reader.rules(FlowRules(pace=Pace(100, 200, 400)), NONE)
    pack = bench.give()
    bench.reader.sleep(0.03)
    bench.reader.rollback(pack)
    assert next_get(bench) == 70


@pytest.mark.parametrize(("slow", "wait"), [(False, 200), (True, 400)])
def test_the_pace_of_a_reader_with_filters(slow: bool, wait: int) -> None:
    bench = Bench(filters=[b"f"])
    bench.reader.rules(NONE, FlowRules(pace=Pace(100, 200, 400)))
    one = message(b"x", b"$msgType$=f")
    bench.answer(bench.request(), got([one], requireSlow=slow))
    bench.reader.rollback(bench.reader.take())
    assert next_get(bench) == wait


CODES = [(301, 200), (403, 2000), (404, 2), (503, 300)] + [
    (code, 300) for code in (400, 401, 405, 410, 413, 414, 500, 510, 599)
]  # fmt: skip


@pytest.mark.parametrize(("code", "wait"), [*CODES, (452, 400)])
def test_waits_after_codes(code: int, wait: int) -> None:
    bench = Bench()
    bench.answer(bench.request(), refused(code))
    assert bench.reader.state(1) == "delayed"
    assert next_get(bench) == wait
    told = [] if code == 404 else [("told", 1, code, 0, b"", b"")]
    assert bench.reader.events() == told
    others = bench.reader.tally()[2]
    assert (others["empty"], others["refused"]) == ((1, 0) if code == 404 else (0, 1))


@pytest.mark.parametrize(("asked", "wait"), [(750, 750), (0, 400), (-1, 400)])
def test_the_wait_of_a_speed_limit_is_the_brokers(asked: int, wait: int) -> None:
    bench = Bench()
    bench.answer(bench.request(), refused(452, minLimitTime=asked))
    assert next_get(bench) == wait


@pytest.mark.parametrize("code", [411, 412, 415])
def test_codes_that_end_a_reader(code: int) -> None:
    bench = Bench(2)
    first, second = bench.requests()
    bench.answer(first, refused(code))
    assert bench.reader.events() == [("lost", 1, code, 0, b"", b"")]
    assert (bench.reader.holds(), bench.reader.state(2)) == ([2], "asked")
    bench.answer(second, got([b"x"]))
    assert hold_of(bench.reader.take()) == 2


def test_an_exception_and_an_answer_that_nobody_reads() -> None:
    bench = Bench()
    first = bench.request()
    bench.reader.receive("a", frame(first.serial, exception(1, b"java.lang.Error", b"trace")))
    assert bench.reader.events() == [("told", 1, 0, 1, b"java.lang.Error", b"trace")]
    bench.reader.sleep(0.3)
    bench.answer(bench.request(), b"\xff\xff")
    assert bench.reader.tally()[2]["refused"] == 2
    assert next_get(bench) == 300


def test_an_event_without_memory_is_known_to_the_driver() -> None:
    """Whoever waits for what it says would wait for ever."""
    reader = Bench().reader
    assert reader.miss(1 << 62)
    assert reader.events() == []


def test_waits_after_nothing_grow_to_the_limit_and_begin_again_after_a_pack() -> None:
    bench = Bench(nothing=0.1)
    waits = []
    request = bench.request()
    for _ in range(7):
        bench.answer(request, refused(404, minLimitTime=5000))
        waits.append(bench.reader.due() // 1000)
        bench.reader.sleep(waits[-1] / 1000)
        request = bench.request()
    assert waits == [2, 4, 8, 16, 32, 64, 100]
    bench.answer(request, got([b"x"]))
    bench.reader.rollback(bench.reader.take())
    bench.answer(bench.request(), refused(404))
    assert next_get(bench) == 2


def test_the_rules_for_answers_without_messages() -> None:
    bench = Bench()
    bench.reader.rules(FlowRules(empty=(EmptyRule(2, 700),)), NONE)
    bench.answer(bench.request(), refused(404))
    bench.reader.sleep(0.01)
    bench.answer(bench.request(), refused(404))
    assert next_get(bench) == 700


def test_an_answer_with_a_pack_of_no_messages() -> None:
    bench = Bench()
    bench.answer(bench.request(), got([], currOffset=280))
    assert (bench.reader.state(1), bench.reader.ready, bench.reader.tally()[2]["empty"]) == ("idle", 0, 1)
    assert bench.reader.offsets(1)[0] == 280
    assert bench.request().method == GET


def test_a_pack_of_which_nothing_is_left_is_confirmed_by_the_reader() -> None:
    bench = Bench(filters=[b"mine"])
    others = [message(b"1", b"$msgType$=other"), message(b"2", b"$msgType$=mine", broken=True)]
    bench.answer(bench.request(), got(others))
    assert bench.reader.take() is None
    assert bench.reader.state(1) == "confirming"
    commit, ahead = bench.requests()
    bench.answer(commit, committed())
    bench.answer(ahead, got([message(b"3", b"$msgType$=mine"), others[0]]))
    assert bench.reader.take().bodies() == [b"3"]
    packs, messages, rest = bench.reader.tally()
    assert (packs, messages) == ([2, 1, 0, 0], [1, 0, 0, 0])
    assert (rest["filtered"], rest["broken"]) == (2, 1)


# --- how many at once


def test_bytes_are_bounded_but_one_pack_comes_always() -> None:
    bench = Bench(4, prefetch=1)
    for turn in (1, 2, 3, 4, 1, 2):
        pack = bench.give()
        assert hold_of(pack) == turn
        bench.reader.rollback(pack)


def test_the_first_answers_may_be_as_large_as_a_broker_makes_them() -> None:
    bench = Bench(8, prefetch=3 * 524288)
    assert len(bench.requests()) == 3
    assert bench.reader.states() == {"asked": 3, "idle": 5}


def test_large_packs_count_as_they_are() -> None:
    size = 900_000
    bench = Bench(4, prefetch=2_000_000)
    requests = bench.requests()
    most = 0
    for turn in range(40):
        bench.answer(requests.pop(0), got([bytes(size)]))
        requests += bench.requests()
        most = max(most, bench.reader.held_bytes)
        if turn % 3 == 2 or not requests:
            while (pack := bench.reader.take()) is not None:
                bench.reader.confirm(pack)
                for one in bench.requests():
                    if one.method == COMMIT:
                        bench.answer(one, committed())
                    else:
                        requests.append(one)
            requests += bench.requests()
    assert 0 < most <= 2_000_000 + size + HEADS


def test_turns_are_fair_when_each_pack_is_confirmed_at_once() -> None:
    bench = Bench(3, prefetch=1)
    turns: list[int] = []
    requests = bench.requests()
    for _ in range(30):
        (request,) = requests
        bench.answer(request, got([b"x"]))
        pack = bench.reader.take()
        turns.append(hold_of(pack))
        bench.reader.confirm(pack)
        commit, *requests = bench.requests()
        bench.answer(commit, committed())
        requests += bench.requests()
    assert {turns.count(number) for number in (1, 2, 3)} == {10}


def test_a_wait_without_a_partition_that_can_be_asked_ends_when_there_is_room() -> None:
    """A connection that is found late after the turn was given leaves room: the reader must want another turn."""
    bench = Bench(0, prefetch=1)
    bench.reader.hold(1, "a")
    bench.reader.hold(2, "b")
    bench.request()
    assert bench.reader.states() == {"asked": 1, "idle": 1}
    bench.reader.lost("a")
    assert bench.reader.due() == 0
    bench.reader.advance()
    assert (bench.reader.state(2), bench.reader.asked) == ("asked", 1)


# --- time


def test_a_pack_that_is_out_for_too_long() -> None:
    bench = Bench(confirm=30.0)
    bench.answer(bench.request(), got([b"x"]))
    bench.reader.sleep(100)  # it may wait for the application as long as it likes
    pack = bench.reader.take()
    assert bench.reader.due() == 30_000_000
    bench.reader.sleep(29.999999)
    assert ended(pack) == ("held", 0)
    bench.reader.sleep(0.000001)
    assert ended(pack) == ("expired", LATE)
    assert bench.request().method == GET
    bench.reader.confirm(pack)
    assert (bench.reader.state(1), bench.requests()) == ("asked", [])


def test_a_release_waits_for_the_pack_that_is_out() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.release(1, 3)
    assert bench.reader.due() == 3_000_000
    bench.reader.sleep(2.9)
    assert (bench.reader.state(1), bench.reader.events()) == ("ready", [])
    bench.reader.sleep(0.1)
    assert (bench.reader.state(1), ended(pack)) == (None, ("expired", REVOKED))
    assert bench.reader.events() == [("released", 1, 0, 0, b"", b"")]
    assert bench.requests() == []


def test_a_release_does_not_lengthen_the_time_of_a_pack() -> None:
    bench = Bench(confirm=2.0)
    pack = bench.give()
    bench.reader.release(1, 3)
    bench.reader.sleep(2)
    assert (bench.reader.holds(), pack.outcome) == ([], "expired")


def test_a_release_takes_back_what_nobody_has() -> None:
    bench = Bench()
    bench.answer(bench.request(), got([b"x"]))
    bench.reader.release(1, 3)
    assert (bench.reader.take(), bench.reader.ready, bench.reader.holds()) == (None, 0, [])
    assert bench.reader.events() == [("released", 1, 0, 0, b"", b"")]
    assert bench.reader.tally()[0] == [1, 0, 1, 0]


def test_a_rollback_ends_a_release() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.release(1, 3)
    bench.reader.rollback(pack)
    assert (bench.reader.holds(), ended(pack)) == ([], ("rolled_back", 0))
    assert bench.reader.events() == [("released", 1, 0, 0, b"", b"")]


def test_answers_for_partitions_that_were_given_back() -> None:
    bench = Bench(2)
    first, second = bench.requests()
    bench.reader.release(1, 3)
    bench.reader.drop(2, 412)
    assert [one[:3] for one in bench.reader.events()] == [("released", 1, 0)]
    bench.answer(first, got([b"x"]))
    assert (bench.reader.asked, bench.reader.take()) == (1, None)
    bench.answer(second, got([b"x"]))
    assert (bench.reader.asked, bench.reader.held_bytes, bench.reader.tally()[0]) == (0, 0, [0, 0, 0, 0])


def test_a_confirm_under_way_outlives_the_time_of_a_release() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.confirm(pack)
    commit, ahead = bench.requests()
    bench.reader.release(1, 1)
    bench.reader.sleep(5)
    assert (bench.reader.state(1), pack.outcome) == ("confirming", "held")
    bench.answer(commit, committed())
    assert (bench.reader.holds(), ended(pack)) == ([], ("confirmed", 0))
    bench.answer(ahead, got([b"y"]))
    assert (bench.reader.take(), bench.reader.asked) == (None, 0)


def test_a_drop_while_it_is_confirmed() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.confirm(pack)
    commit, ahead = bench.requests()
    bench.reader.drop(1, 412)
    assert (ended(pack), bench.reader.holds()) == (("expired", 412), [])
    bench.answer(commit, committed())
    bench.answer(ahead, got([b"y"]))
    assert (ended(pack), bench.reader.asked, bench.reader.take()) == (("expired", 412), 0, None)
    assert bench.reader.events() == []


def test_a_drop_of_what_nobody_has() -> None:
    bench = Bench()
    bench.answer(bench.request(), got([b"x"]))
    bench.reader.drop(1, 411)
    assert (bench.reader.take(), bench.reader.tally()[0]) == (None, [1, 0, 1, 0])


# --- pauses


def test_a_pause_takes_back_what_nobody_has_and_keeps_the_wait() -> None:
    bench = Bench()
    bench.answer(bench.request(), got([b"x"]))
    bench.reader.pause(1)
    assert (bench.reader.take(), bench.reader.state(1), bench.reader.tally()[0]) == (None, "frozen", [1, 0, 1, 0])
    bench.reader.resume(1)
    bench.answer(bench.request(), refused(403))
    bench.reader.pause(1)
    bench.reader.sleep(0.5)
    bench.reader.resume(1)
    assert next_get(bench) == 1500


def test_nothing_that_comes_in_a_pause_is_given_out() -> None:
    bench = Bench()
    request = bench.request()
    bench.reader.pause(1)
    bench.answer(request, got([b"x"]))
    assert (bench.reader.take(), bench.reader.state(1), bench.reader.held_bytes) == (None, "frozen", 0)
    bench.reader.resume(1)
    assert bench.give(b"x").bodies() == [b"x"]


def test_nothing_that_was_asked_for_ahead_is_given_out_in_a_pause() -> None:
    bench = Bench()
    bench.reader.confirm(bench.give())
    commit, ahead = bench.requests()
    bench.reader.pause(1)
    bench.answer(commit, committed())
    bench.answer(ahead, got([b"y"]))
    assert (bench.reader.take(), bench.reader.state(1)) == (None, "frozen")


# --- confirms and connections


def test_a_confirm_that_is_answered_after_the_next_pack() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.confirm(pack)
    commit, ahead = bench.requests()
    bench.answer(ahead, got([b"y"]))
    assert (bench.reader.state(1), bench.reader.take(), bench.reader.asked) == ("confirming", None, 0)
    bench.answer(commit, committed())
    assert (ended(pack), bench.reader.state(1)) == (("confirmed", 0), "idle")
    assert bench.give(b"y").bodies() == [b"y"]


@pytest.mark.parametrize("code", [400, 403, 500, 503])
def test_a_confirm_that_is_refused(code: int) -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.confirm(pack)
    commit, ahead = bench.requests()
    bench.answer(commit, committed(code))
    assert (ended(pack), bench.reader.state(1)) == (("expired", code), "asked")
    bench.answer(ahead, got([b"x"]))
    assert bench.reader.take() is not None


@pytest.mark.parametrize("code", [401, 411, 412, 415])
def test_a_confirm_of_a_partition_that_is_anothers(code: int) -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.confirm(pack)
    commit, ahead = bench.requests()
    bench.answer(commit, committed(code))
    assert (ended(pack), bench.reader.holds()) == (("expired", code), [])
    assert bench.reader.events() == [("lost", 1, code, 0, b"", b"")]
    bench.answer(ahead, got([b"x"]))
    assert (bench.reader.take(), bench.reader.asked) == (None, 0)


def test_both_lost() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.confirm(pack)
    bench.requests()
    bench.reader.lost("a")
    assert (ended(pack), bench.reader.asked, bench.reader.balances) == (("expired", UNANSWERED), 0, True)
    assert next_get(bench) == 100


def test_a_connection_that_is_lost_while_the_application_works() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.lost("a")
    assert (pack.outcome, bench.reader.connection("a")[0]) == ("held", "closed")
    bench.reader.confirm(pack)
    assert bench.reader.connection("a")[0] == "wanted"
    commit = bench.requests()[0]
    bench.answer(commit, committed())
    assert ended(pack) == ("confirmed", 0)


def test_what_nobody_has_taken_goes_back_with_its_connection() -> None:
    """A broker that was started again does not know its readers: what it gave out before may be another member's."""
    bench = Bench(2)
    for request in bench.requests():
        bench.answer(request, got([b"of %d" % request.partition]))
    taken = bench.reader.take()
    bench.reader.lost("a")
    assert (taken.bodies(), taken.outcome) == ([b"of 1"], "held")
    assert (bench.reader.take(), bench.reader.states(), bench.reader.balances) == (None, {"ready": 1, "idle": 1}, True)
    assert bench.reader.tally()[0] == [2, 0, 1, 0]
    bench.reader.advance()
    assert next_get(bench) == 100  # it is asked for again
    bench.reader.hold(3, "b")
    bench.answer(bench.requests("b")[0], got([b"of 3"]), "b")
    bench.reader.lost("a")
    assert bench.reader.take().bodies() == [b"of 3"]


def test_waits_of_a_connection_grow_and_begin_again_after_an_answer() -> None:
    bench = Bench()
    waits = []
    for _ in range(9):
        bench.request()
        bench.reader.lost("a")
        waits.append(next_wait(bench.reader))
    assert waits == [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]
    bench.answer(bench.request(), refused(404))
    bench.reader.sleep(0.01)
    bench.request()
    bench.reader.lost("a")
    assert next_wait(bench.reader) == 100


def next_wait(reader: Reader) -> int:
    """Return the ms until the next turn, which comes."""
    due = int(reader.due())
    assert reader.connection("a")[2] == due
    reader.sleep(due / 1e6)
    return due // 1000


def test_a_control_call_does_not_wait() -> None:
    bench = Bench()
    bench.request()
    bench.reader.lost("a")
    bench.reader.call(7, "a", 3, 11, b"request", 5.0)
    assert bench.reader.connection("a")[0] == "wanted"
    bench.reader.connecting("a", 1.0)
    assert bench.reader.connection("a")[3] == 1_000_000
    bench.reader.events()
    bench.reader.lost("a", detail=111)
    assert bench.reader.events() == [("fault", 7, 1, 111, b"", b"")]


def test_the_end_gives_every_pack_an_outcome() -> None:
    bench = Bench(3)
    first, second, third = bench.requests()
    bench.answer(first, got([b"x"]))
    out = bench.reader.take()
    bench.answer(second, got([b"x"]))
    confirming = bench.reader.take()
    bench.reader.confirm(confirming)
    bench.answer(third, got([b"x"]))
    bench.reader.end()
    assert (ended(out), ended(confirming)) == (("expired", CLOSED), ("expired", CLOSED))
    assert (bench.reader.tally()[0], bench.reader.holds(), bench.reader.balances) == ([3, 0, 1, 2], [], True)
    bench.reader.lost("a")


# --- another place, another address, and the limit of bytes


SOUGHT = -5


def test_what_becomes_of_packs_of_a_partition_that_is_sought() -> None:
    bench = Bench(2)
    first, second = bench.requests()
    bench.answer(first, got([b"a"]))
    bench.answer(second, got([b"b"]))
    out = bench.reader.take()
    waiting = 2 if hold_of(out) == 1 else 1
    bench.reader.release(waiting, 0.0, True)
    bench.reader.release(hold_of(out), 0.0, True)
    bench.reader.advance()
    assert bench.reader.take() is None
    assert ended(out) == ("expired", SOUGHT)
    assert bench.reader.tally()[0] == [2, 0, 1, 1]
    assert [event[:2] for event in bench.reader.events()] == [("released", waiting), ("released", hold_of(out))]


def test_a_confirm_that_is_under_way_is_waited_for_before_a_partition_is_read_elsewhere() -> None:
    bench = Bench()
    pack = bench.give()
    bench.reader.confirm(pack)
    commit, ahead = bench.requests()
    bench.reader.release(1, 0.0, True)
    bench.reader.advance()
    assert bench.reader.events() == []
    bench.answer(commit, committed())
    assert ended(pack) == ("confirmed", 0)
    assert [event[0] for event in bench.reader.events()] == ["released"]
    bench.reader.hold(2, partition=1, offset=280)
    bench.answer(ahead, got([b"of the old place"]))
    assert (bench.reader.take(), bench.reader.offsets(2)[0]) == (None, 280)


def test_a_partition_that_is_paused_from_the_start() -> None:
    bench = Bench(0)
    bench.reader.hold(1, paused=True)
    assert (bench.reader.advance(), bench.reader.state(1), bench.reader.asked) == (None, "frozen", 0)
    bench.reader.resume(1)
    assert bench.request().method == GET


def test_a_broker_that_has_another_address_is_followed() -> None:
    bench = Bench()
    old = bench.request()
    bench.reader.follow(1, "b")
    bench.answer(old, got([b"x"]))
    pack = bench.reader.take()
    bench.reader.confirm(pack)
    assert bench.written("a") == []
    commit, ahead = bench.requests("b")
    assert (commit.method, ahead.method) == (COMMIT, GET)


def test_a_request_without_an_answer_is_told() -> None:
    bench = Bench()
    bench.request()
    bench.reader.lost("a", detail=104)
    assert bench.reader.events() == [("broken", 1, 2, 104, b"", b"")]


def test_a_pack_that_there_is_no_room_for_comes_again() -> None:
    large = b"x" * (3 << 20)
    bench = Bench(3, prefetch=4 << 20)
    requests = bench.requests()
    assert len(requests) == 3
    bench.answer(requests[0], got([large]))
    bench.answer(requests[1], got([large]))
    bench.answer(requests[2], got([b"small"]))
    assert bench.reader.held_bytes <= 4 << 20
    assert (bench.reader.state(2), bench.reader.tally()[0]) == ("idle", [2, 0, 0, 0])
    first, small = bench.reader.take(), bench.reader.take()
    assert (first.bodies(), small.bodies()) == ([large], [b"small"])
    assert bench.requests() == []
    assert bench.reader.due() is None or bench.reader.due() > 0  # it is not looked at again and again
    bench.reader.confirm(small)
    bench.answer(bench.request(COMMIT), committed())
    assert bench.requests() == []  # its turn comes when there is room for its pack, and not before
    bench.reader.confirm(first)
    commit, *_ = bench.requests()
    bench.answer(commit, committed())
    again = bench.request()
    assert again.partition == 2
    bench.answer(again, got([large]))
    assert bench.reader.take().bodies() == [large]
    assert bench.reader.held_bytes <= 4 << 20


def test_a_partition_that_had_nothing_keeps_no_room() -> None:
    """A broker may let a request wait for a message, and others are not to wait for that one."""
    bench = Bench(4, prefetch=524288)
    for number in (1, 2, 3, 4):  # what they have is not known: one at a time
        request = bench.request()
        assert request.partition == number
        bench.answer(request, refused(404))
    bench.reader.sleep(0.1)
    waiting = bench.requests()
    assert [one.partition for one in waiting] == [1, 2, 3, 4]
    large = b"x" * 400_000
    bench.answer(waiting[1], got([large]))
    bench.answer(waiting[3], got([large]))  # for which there is no room: it comes again, and for that one room is kept
    pack = bench.reader.take()
    assert (pack.bodies(), bench.reader.take(), bench.requests()) == ([large], None, [])
    assert len(large) <= bench.reader.held_bytes <= 524288
    bench.reader.confirm(pack)
    commit, *_ = bench.requests()
    bench.answer(commit, committed())
    again = bench.request()
    assert again.partition == 4
    bench.answer(again, got([large]))
    assert bench.reader.take().bodies() == [large]


def test_a_pack_above_the_limit_comes_alone() -> None:
    large = b"x" * (3 << 20)
    bench = Bench(2, prefetch=700_000)
    first = bench.request()
    bench.answer(first, got([large]))
    pack = bench.reader.take()
    assert bench.requests() == []
    bench.reader.confirm(pack)
    commit, *_ = bench.requests()
    bench.answer(commit, committed())
    (second,) = bench.requests()
    assert second.partition != first.partition


@pytest.mark.parametrize(
    ("offset", "end", "known"), [(280, 280, (280, 280, 0)), (28, 280, (28, 280, -1)), (28, -1, (28, -1, -1))]
)
def test_what_a_registration_says_of_the_end_is_known_before_the_first_answer(
    offset: int, end: int, known: tuple[int, int, int]
) -> None:
    bench = Bench()
    bench.reader.hold(2, partition=1, offset=offset, end=end)
    assert bench.reader.offsets(2) == known
