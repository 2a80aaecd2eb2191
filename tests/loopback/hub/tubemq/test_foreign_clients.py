"""A hub before scripts that behave as TubeMQ's C++, Go and Java clients: each line of what a server owes them.

The first part goes through the least that a server has to do, line by line; the second plays each client whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.hub import Hub
from tests.support.foreignclients import CPP, GO, JAVA, Client, Consumer, Habits, took_apart
from tests.support.waiting import eventually

ALL = pytest.mark.parametrize("habits", [CPP, GO, JAVA], ids=["cpp", "go", "java"])
INDEX = 28
Start = Callable[[Habits], Consumer]


@pytest.fixture
def hub(start_hub: Callable[..., Hub]) -> Hub:
    return start_hub(tubemq_port=0, partitions=3)


@pytest.fixture
def start(hub: Hub) -> Iterator[Start]:
    """Return a function that connects a client, as a member of the group g."""
    made: list[Client] = []

    def begin(habits: Habits) -> Consumer:
        made.append(Consumer(hub.tubemq_port, habits, "g"))
        return made[-1]  # type: ignore[return-value]

    yield begin
    for one in made:
        one.__exit__()


def place(hub: Hub, partition: int = 0, topic: str = "t") -> str:
    """Return the text of a partition."""
    return f"1:127.0.0.1:{hub.tubemq_port}#{topic}:{partition}"


def fill(one: Client, n: int, items: str = "", size: int = 0) -> list[bytes]:
    """Send messages to partition 0 of t, with filter items in turn."""
    one.register_producer("t")
    wanted = [b"%d" % i + b"." * size for i in range(n)]
    for i, body in enumerate(wanted):
        assert one.send("t", body, item=items[i % len(items)] if items else "").code == 200
    return wanted


def event_of(answer: Any) -> dict[int, list[Any]] | None:
    """Return the event of an answer to a heartbeat, None without one; an empty one does not count as none."""
    found = answer.fields.get(4)
    return None if found is None else took_apart(found[0])


def next_event(hub: Hub, one: Consumer) -> dict[int, list[Any]]:
    """Return the next event that a member is told, by heartbeats that say nothing."""
    found: list[dict[int, list[Any]]] = []

    def told() -> bool:
        hub._core.advance_clock(0.6)
        event = event_of(one.heartbeat())
        found.extend([] if event is None else [event])
        return bool(found)

    assert eventually(told)
    return found[0]


def settle(hub: Hub, *members: Consumer) -> None:
    """Let members work off what they are told until all three partitions are held and nothing is told any more."""

    def step() -> bool:
        hub._core.advance_clock(0.6)
        quiet = True
        for one in members:
            event = event_of(one.heartbeat(report=True))
            if event is None:
                continue
            quiet = False
            for partition in [text.decode().partition("#")[2] for text in event.get(4, [])]:
                if event[2][0] in (2, 20):
                    one.give_back(partition)
                    one.held.remove(partition)
                else:
                    assert one.take(partition).code == 200
                    one.held.append(partition)
            one.heartbeat(event)
        return quiet and sum(len(one.held) for one in members) == 3

    assert eventually(step)


# --- general, 1: frames, and what does not matter in them


@ALL
@pytest.mark.parametrize("service", [1, 2, 3, 99])
def test_general_1_calls_go_by_their_method_whatever_the_service(start: Start, habits: Habits, service: int) -> None:
    one = start(dataclasses.replace(habits, sends_by=service))
    one.register_producer("t")
    assert one.send("t", b"x").code == 200
    fields = {1: one.id, 2: -1, 3: "h", 4: ["t"]}
    assert one.ask(service, 2, fields).code == 200


def test_general_1_answers_have_slices_and_as_few_as_any_client_reads(hub: Hub, start: Start) -> None:
    one = start(CPP)
    wanted = fill(one, 40, size=20_000)
    one.take(place(hub))
    answer = one.get(place(hub))  # `frames_in` holds every frame to the sizes
    assert one.bodies(answer) == wanted[: len(answer.fields[4])]
    assert len(answer.fields[4]) == 17


@pytest.mark.parametrize("flag", [0, 1, 10, -1])
def test_general_1_the_flag_of_a_request_does_not_matter(hub: Hub, start: Start, flag: int) -> None:
    one = start(dataclasses.replace(GO, commit_flag=flag))
    fill(one, 2)
    one.take(place(hub))
    one.get(place(hub))
    assert one.commit(place(hub))[4] == 2 * INDEX
    assert one.ask(1, 2, {1: one.id, 2: -1, 3: "h", 4: ["t"]}, flag=flag).code == 200


@pytest.mark.parametrize("timeout", [0, 1, -5, 2**62])
def test_general_1_the_time_limit_of_a_request_does_not_matter(hub: Hub, start: Start, timeout: int) -> None:
    one = start(dataclasses.replace(CPP, timeout_ms=timeout))
    assert len(fill(one, 1)) == 1
    assert one.take(place(hub)).code == 200
    assert one.bodies(one.get(place(hub))) == [b"0"]


def test_general_1_zeros_behind_a_request_do_not_matter(hub: Hub, start: Start) -> None:
    one = start(CPP)
    assert one.habits.pads
    wanted = fill(one, 1, size=20_000)
    assert one.take(place(hub)).code == 200
    assert one.bodies(one.get(place(hub))) == wanted


def test_general_1_unknown_fields_do_not_matter(hub: Hub, start: Start) -> None:
    one = start(GO)
    fill(one, 1)
    more = {77: 5, 78: "text", 79: {1: 2}}
    who = {1: 31, 2: one.id, 3: "g", 4: "t", 5: 0, 6: 0}
    assert one.ask(2, 15, {**who, **more}).code == 200
    assert one.ask(2, 17, {1: one.id, 2: 0, 3: "g", 4: "t", **more}).code == 200
    assert one.ask(2, 18, {1: one.id, 2: "t", 3: 0, 4: "g", **more}).code == 200
    assert one.ask(1, 5, {1: one.id, 2: "g", 4: 0, **more}).code == 411


# --- general, 2 and 3: every call has its answer


@ALL
def test_general_2_calls_are_answered_after_a_close_too(hub: Hub, start: Start, habits: Habits) -> None:
    one = start(habits)
    fill(one, 1)
    one.register("t")
    one.take(place(hub))
    assert [one.close().code, one.close().code] == [200, 200]
    assert one.heartbeat().code == 411
    assert one.bodies(one.get(place(hub))) == [b"0"], "the broker's part has not heard of it"
    assert one.give_back(place(hub)).code == 200
    assert one.give_back(place(hub)).code == 411
    assert [one.close_producer().code, one.close_producer().code] == [200, 200]
    assert one.producer_heartbeat(-1, "t").code == 411


@ALL
def test_general_2_answers_of_a_connection_come_in_order_with_its_numbers(start: Start, habits: Habits) -> None:
    one = start(habits)
    one.register_producer("t")
    for service, method, fields in (
        (1, 2, {1: one.id, 2: -1, 3: "h", 4: ["t"]}),
        (2, 18, {1: one.id, 2: "t", 3: 0, 4: "g"}),
    ):
        one.arrived.clear()
        serials = [one.post(service, method, fields) for _ in range(50)]
        for serial in serials:
            answer = one.answer(serial)
            assert (answer.status, answer.version, answer.method) == (0, 3, method)
        assert one.arrived == serials


def test_general_2_what_nobody_knows_is_answered_with_an_exception(start: Start) -> None:
    for method in (11, 12, 14, 19, 23):
        answer = start(CPP).ask(2, method, {1: "x"})
        assert (answer.status, answer.exception) == (1, "java.lang.Exception")


def test_general_3_answers_say_success_code_and_text(hub: Hub, start: Start) -> None:
    """`Answer.code` compares the three, of every answer here; these are some that refuse."""
    one = start(GO)
    one.held = []
    refused = [one.heartbeat().code, one.commit(place(hub)).code, one.get(place(hub)).code, one.send("no#", b"x").code]
    assert refused == [411, 401, 411, 403]


# --- the master


@ALL
def test_master_1_a_producer_is_told_the_brokers_and_their_version(hub: Hub, start: Start, habits: Habits) -> None:
    answer = start(habits).register_producer("t")
    assert answer.code == 200
    assert answer[4] != -1
    assert answer.texts(5) == [f"1:127.0.0.1:{hub.tubemq_port}"]
    assert 1 in took_apart(answer[6])


def test_master_2_a_heartbeat_has_all_topics_every_time(hub: Hub, start: Start) -> None:
    one = start(GO)
    version = one.register_producer("t", "u")[4]
    for checksum, brokers in ((version, 0), (-1, 1), (version, 0), (version + 1, 1)):
        answer = one.producer_heartbeat(checksum, "t", "u", "no topic")
        assert (answer.code, answer[4]) == (200, version)
        assert sorted(text.partition("#")[0] for text in answer.texts(5)) == ["t", "u"]
        assert len(answer.texts(6)) == brokers, "only for who has another version"
    assert start(CPP).producer_heartbeat(-1, "t").code == 411


@ALL
def test_master_3_a_producer_may_close_twice(start: Start, habits: Habits) -> None:
    one = start(habits)
    one.register_producer("t")
    assert [one.close_producer().code for _ in range(2)] == [200, 200]


@ALL
def test_master_4_a_consumer_is_taken_with_what_it_holds(hub: Hub, start: Start, habits: Habits) -> None:
    one = start(habits)
    one.held = [place(hub, 2)]
    answer = one.register("t")
    assert (answer.code, answer[5]) == (200, 0), "somebody holds a partition, so the group is assigned"
    other = start(habits)
    other.group = "fresh"
    assert other.register("t")[5] == 1


def test_master_4_filters_are_the_groups(start: Start) -> None:
    assert start(CPP).register("t", filters={"t": "a,b"}).code == 200
    assert start(GO).register("t", filters={"t": "b,a"}).code == 200
    assert start(JAVA).register("t").code == 426


def test_master_4_topics_that_are_not_there(start_hub: Callable[..., Hub]) -> None:
    hub = start_hub(tubemq_port=0, topics=["t"])
    with Consumer(hub.tubemq_port, GO, "g") as one:
        assert one.register("other").code == 431
        assert one.register("t").code == 200


def test_master_5_a_member_that_is_not_known(start: Start) -> None:
    one = start(CPP)
    one.held = []
    assert one.heartbeat().code == 411


@ALL
def test_master_5_events_come_once_and_grow(hub: Hub, start: Start, habits: Habits) -> None:
    one = start(habits)
    assert one.register("t")[5] == 1
    event = next_event(hub, one)
    assert (event[1][0] > 0, event[2][0], len(event[4])) == (True, 10, 3)
    assert {text.decode().partition("#")[0] for text in event[4]} == {f"{one.id}@g"}
    for _ in range(3):
        answer = one.heartbeat()
        assert (answer.code, 4 in answer.fields) == (200, False), "no field at all while one is out"
    one.held = [place(hub, i) for i in range(3)]
    answer = one.heartbeat(event)
    assert (answer[5], 4 in answer.fields) == (0, False), "and none when there is none"
    other = start(habits)
    other.register("t")
    assert next_event(hub, one)[1][0] > event[1][0]


def test_master_5_nothing_is_given_before_it_is_taken(hub: Hub, start: Start) -> None:
    first, second = start(CPP), start(GO)
    first.register("t")
    settle(hub, first)
    second.register("t")
    taking = next_event(hub, first)
    assert (taking[2][0], len(taking[4])) == (20, 1)
    for _ in range(3):
        hub._core.advance_clock(0.6)
        assert event_of(second.heartbeat()) is None
    lost = taking[4][0].decode().partition("#")[2]
    first.give_back(lost)
    first.held.remove(lost)
    first.heartbeat(taking)
    giving = next_event(hub, second)
    assert (giving[2][0], giving[4][0].decode().partition("#")[2]) == (10, lost)


def test_master_6_what_a_member_held_is_free_when_it_closes(hub: Hub, start: Start) -> None:
    first, second = start(JAVA), start(GO)
    first.register("t")
    second.register("t")
    settle(hub, first, second)
    for partition in list(second.held):
        second.give_back(partition)
    second.held = []
    assert second.close().code == 200
    settle(hub, first)
    assert len(first.held) == 3


def test_master_the_balance_is_even(hub: Hub, start: Start) -> None:
    members = [start(one) for one in (CPP, GO, JAVA)]
    for one in members:
        one.register("t")
    settle(hub, *members)
    assert [len(one.held) for one in members] == [1, 1, 1]


def test_master_clients_expire_no_sooner_than_they_may(hub: Hub, start: Start) -> None:
    one = start(CPP)
    one.register_producer("t")
    one.register("t")
    hub._core.advance_clock(29.0)
    assert one.heartbeat().code == 200
    hub._core.advance_clock(15.0)
    assert one.producer_heartbeat(-1, "t").code == 200, "44 s"
    assert one.heartbeat().code == 200
    hub._core.advance_clock(31.0)
    assert eventually(lambda: one.heartbeat().code == 411)
    hub._core.advance_clock(15.0)
    assert eventually(lambda: one.producer_heartbeat(-1, "t").code == 411)


def test_master_what_could_not_be_registered_is_given_again(hub: Hub, start: Start) -> None:
    one = start(GO)
    one.register("t")
    event = next_event(hub, one)
    one.held = [place(hub, 0)]
    one.heartbeat(event, status=0)  # Go leaves it at "to do" when it has aborted a list
    again = next_event(hub, one)
    assert again[1][0] > event[1][0]
    assert {text.decode().rpartition(":")[2] for text in again[4]} == {"1", "2"}


# --- the broker


@ALL
def test_broker_15_locks_and_positions(hub: Hub, start: Start, habits: Habits) -> None:
    one, other = start(habits), start(habits)
    fill(one, 4)
    answer = one.take(place(hub))
    assert (answer.code, answer[4], answer[5]) == (200, 0, 4 * INDEX)
    assert other.take(place(hub)).code == 410
    assert one.take(place(hub)).code == 200, "again, after a failure that was none"
    assert other.give_back(place(hub)).code in (411, 412)
    assert one.give_back(place(hub)).code == 200
    assert other.take(place(hub), 1)[4] == 0, "the group has a position"
    other.give_back(place(hub))
    assert other.take(place(hub), 2)[4] == 4 * INDEX
    other.give_back(place(hub))
    assert other.take(place(hub), 0, offset=2 * INDEX)[4] == 2 * INDEX
    fresh = start(habits)
    fresh.group = "fresh"
    assert fresh.take(place(hub), 1)[4] == 4 * INDEX, "one without a position begins at the end"


@pytest.mark.parametrize(("status", "at"), [(0, 3 * INDEX), (1, 0)])
def test_broker_15_an_end_confirms_or_discards(hub: Hub, start: Start, status: int, at: int) -> None:
    one = start(JAVA)
    fill(one, 3)
    one.take(place(hub))
    assert len(one.bodies(one.get(place(hub)))) == 3
    one.give_back(place(hub), status)
    assert one.take(place(hub))[4] == at


@ALL
def test_broker_16_tells_what_is_not_held(hub: Hub, start: Start, habits: Habits) -> None:
    one, other = start(habits), start(habits)
    fill(one, 1)
    one.take(place(hub, 0))
    other.take(place(hub, 1))
    answer = one.hold(place(hub, 0), place(hub, 1), place(hub, 2))
    assert (answer.code, answer[4]) == (200, 1)
    assert answer.texts(5) == [f"412:{place(hub, 1)}", f"411:{place(hub, 2)}"]
    assert one.hold(place(hub, 0)).fields.get(4, [0]) == [0]


@ALL
def test_broker_17_packs_and_their_fields(hub: Hub, start: Start, habits: Habits) -> None:
    one = start(habits)
    wanted = fill(one, 5)
    assert one.get(place(hub)).code == 411
    one.take(place(hub))
    assert start(habits).get(place(hub)).code == 412
    for consumed in (0, None):  # left out is false
        answer = one.get(place(hub), consumed)
        assert one.bodies(answer) == wanted
        assert [answer[number] for number in (5, 7, 8, 9, 10)] == [0, 0, 0, 0, 5 * INDEX]
    answer = one.get(place(hub), 1)
    assert (answer.code, answer[5], answer[6], answer[8]) == (404, -1, 0, -1)
    more = fill(one, 1)
    assert one.bodies(one.get(place(hub))) == more


def test_broker_17_a_wait_is_shorter_than_any_client_waits_and_holds_up_no_other_call(hub: Hub, start: Start) -> None:
    one = start(CPP)
    one.register_producer("t")
    one.take(place(hub))
    assert one.get(place(hub)).code == 404
    serial = one.post(2, 17, {1: one.id, 2: 0, 3: "g", 4: "t"})
    assert one.hold(place(hub)).code == 200
    assert one.commit(place(hub)).code == 200
    hub._core.advance_clock(3.0)
    assert one.answer(serial).code == 404


def test_broker_17_nothing_comes_that_a_filter_does_not_ask_for(hub: Hub, start: Start) -> None:
    one = start(GO)
    wanted = fill(one, 12, "abc")
    one.take(place(hub), items=["b"])
    assert one.bodies(one.get(place(hub))) == wanted[1::3]
    assert one.commit(place(hub))[4] == 12 * INDEX


@ALL
@pytest.mark.parametrize(("consumed", "at"), [(1, 3), (None, 3), (0, 0)], ids=["true", "left out", "false"])
def test_broker_18_confirms(hub: Hub, start: Start, habits: Habits, consumed: int | None, at: int) -> None:
    one = start(habits)
    fill(one, 3)
    one.take(place(hub))
    one.get(place(hub))
    answer = one.commit(place(hub), consumed)
    assert (answer.code, answer[4], answer[5]) == (200, at * INDEX, 3 * INDEX)
    assert start(habits).commit(place(hub)).code == 401


@ALL
@pytest.mark.parametrize("checksum", [-1, None], ids=["none", "right"])
def test_broker_13_a_message_has_its_number_in_the_text(
    hub: Hub, start: Start, habits: Habits, checksum: int | None
) -> None:
    one = start(habits)
    one.register_producer("t")
    answers = [one.send("t", b"%d" % i, 2, checksum=checksum) for i in range(3)]
    assert [answer.code for answer in answers] == [200] * 3
    assert [int(answer[3]) for answer in answers] == [answer[5] for answer in answers]
    assert [answer[7] for answer in answers] == [0, INDEX, 2 * INDEX]
    assert all(answer[6] > 1_600_000_000_000 for answer in answers)
    assert one.send("t", b"x", checksum=1).code == 403
    assert [record.partition for record in hub.records("t")] == [2] * 3


def test_broker_locks_end_no_sooner_than_they_may(hub: Hub, start: Start) -> None:
    one = start(GO)
    fill(one, 1)
    one.take(place(hub))
    hub._core.advance_clock(34.0)
    assert one.get(place(hub)).code == 200
    hub._core.advance_clock(36.0)
    assert one.get(place(hub)).code == 411


def test_broker_offsets_are_28_for_each_message(hub: Hub, start: Start) -> None:
    one = start(CPP)
    fill(one, 7)
    assert one.take(place(hub))[5] == 7 * 28
    one.get(place(hub))
    assert one.commit(place(hub))[4] == 7 * 28
    assert one.commit(place(hub))[4] % 28 == 0


# --- whole clients


def test_go_sends_after_two_heartbeats_through_the_read_service(hub: Hub, start: Start) -> None:
    one = start(GO)
    assert (one.habits.sends_by, one._auth(), one._host) == (2, {}, "127.0.0.1:52000")
    version = one.register_producer("t")[4]
    for _ in range(2):
        assert one.producer_heartbeat(version, "t").texts(5) == ["t#1:3:1#"]
    assert [one.send("t", b"%d" % i, i % 3).code for i in range(6)] == [200] * 6
    assert one.close_producer().code == 200
    assert len(list(hub.records("t"))) == 6


def test_go_with_a_bare_filter_reads_all_and_closes_at_the_master_first(hub: Hub, start: Start) -> None:
    one = start(GO)
    wanted = fill(one, 6, "ab")
    assert GO.bare_filter and GO.escapes
    assert one.register("t").code == 200
    settle(hub, one)
    assert one.bodies(one.get(place(hub))) == wanted
    assert one.commit(place(hub))[4] == 6 * INDEX
    assert one.close().code == 200
    assert [one.give_back(partition).code for partition in one.held] == [200] * 3
    after = start(JAVA)
    assert after.take(place(hub))[4] == 6 * INDEX


def test_go_is_never_held_to_a_speed_which_it_says_with_each_request(hub: Hub, start: Start) -> None:
    """Its flag is inverted, and so it would take 452 for another failure."""
    hub._tubemq.registrations.set_rules(None, ((0, 1440, 21, 12, 500),))
    for habits, group, code in ((GO, "go", 200), (CPP, "cpp", 452)):
        one = start(habits)
        one.group = group
        fill(one, 3, size=100)
        assert one.take(place(hub)).code == 200
        for _ in range(3):
            answer = one.get(place(hub))
        assert answer.code == code


def test_cpp_registers_twice_after_a_failure_and_discards_when_it_gives_back(hub: Hub, start: Start) -> None:
    one = start(CPP)
    wanted = fill(one, 3)
    assert [one.register("t").code for _ in range(2)] == [200, 200]
    settle(hub, one)
    assert [one.take(place(hub)).code for _ in range(2)] == [200, 200]
    assert one.bodies(one.get(place(hub))) == wanted
    serials = [one.post(1, 6, {1: one.id, 2: "g"}), one.post(2, 15, {1: 32, 2: one.id, 3: "g", 4: "t", 5: 0, 6: 1})]
    assert [one.answer(serial).code for serial in serials] == [200, 200], "both at once, in any order"
    after = start(CPP)
    assert after.take(place(hub))[4] == 0


def test_cpp_drops_a_connection_and_goes_on_over_another_one(hub: Hub, start: Start) -> None:
    one = start(CPP)
    wanted = fill(one, 3)
    one.register("t")
    settle(hub, one)
    one.get(place(hub))
    again = Consumer(hub.tubemq_port, CPP, "g")
    again.id, again.held = one.id, one.held
    one.__exit__()
    with again:
        assert again.heartbeat(report=True).code == 200
        assert again.bodies(again.get(place(hub))) == wanted, "what was not confirmed comes again"
        assert again.commit(place(hub))[4] == 3 * INDEX


def test_java_registers_at_once_when_it_is_not_known_with_what_it_holds(hub: Hub, start: Start) -> None:
    one = start(JAVA)
    fill(one, 1)
    one.register("t")
    settle(hub, one)
    hub._core.advance_clock(31.0)
    assert eventually(lambda: one.heartbeat().code == 411)
    assert one.register("t").code == 200
    for _ in range(3):
        hub._core.advance_clock(0.6)
        assert event_of(one.heartbeat(report=True)) is None, "it has what it is to have"
    assert [one.give_back(partition).code for partition in one.held] == [200] * 3
    assert one.close().code == 200


def test_java_beats_as_a_producer_without_topics(start: Start) -> None:
    one = start(JAVA)
    version = one.register_producer()[4]
    answer = one.producer_heartbeat(version)
    assert (answer.code, answer.texts(5)) == (200, [])


def test_the_three_share_a_group_and_nothing_is_lost_or_comes_twice(hub: Hub, start: Start) -> None:
    members = [start(one) for one in (CPP, GO, JAVA)]
    producer = start(GO)
    producer.register_producer("t")
    for one in members:
        one.register("t")
    settle(hub, *members)
    for i in range(90):
        assert producer.send("t", b"%d" % i, i % 3).code == 200
    found: list[bytes] = []
    for one in members:
        found += one.bodies(one.get(one.held[0]))
        assert one.commit(one.held[0])[4] == 30 * INDEX
    assert sorted(found, key=int) == [b"%d" % i for i in range(90)]
