"""One member, call by call: what it asks, of whom, when, and what it makes of the answers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dataproxy.consumer.group.asking import Address, Ask, Drop, Fault, Hold, MemberOptions, Refusal, Release, Untaken
from dataproxy.consumer.group.holdings import Holdings, State
from dataproxy.consumer.group.member import Life, Member
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.texts import Partition, Subscription

MASTERS = (Address("m1", 8715), Address("m2", 8715), Address("m3", 8715))
PARTITIONS = [Partition.read(f"1:b1:8123#t:{i}") for i in range(3)]
BROKER = Address("b1", 8123)
LOST = Fault("no answer in time")


class Driver:
    """A member under test, with the calls that it has made and that have no end yet."""

    def __init__(self, **options: Any) -> None:
        given = {"masters": MASTERS[:1], "client": "g_1", "group": "g", "topics": {"t": ()}, **options}
        self.member = Member(MemberOptions(**given), random.Random(1))
        self.now = 100.0
        self.asks: list[Ask] = []
        self.orders: list[Any] = []
        self.member.start(self.now)
        self.poll()

    def poll(self, after: float = 0.0) -> None:
        """Let time pass, and take what is to be done."""
        self.now += after
        for one in self.member.poll(self.now, int(self.now * 1000)):
            (self.asks if isinstance(one, Ask) else self.orders).append(one)

    def ask(self, name: str) -> Ask:
        """Return the only call under way, which has this name, as it travels."""
        (one,) = self.asks
        assert one.name == name
        return one._replace(message=type(one.message).FromString(one.message.SerializeToString()))

    def answer(self, code: int = 200, **fields: Any) -> None:
        """Answer the oldest call."""
        one = self.asks.pop(0)
        names = {
            "RegisterRequestC2M": "RegisterResponseM2C", "HeartRequestC2M": "HeartResponseM2C",
            "CloseRequestC2M": "CloseResponseM2C", "RegisterRequestC2B": "RegisterResponseB2C",
            "HeartBeatRequestC2B": "HeartBeatResponseB2C",
        }  # fmt: skip
        kind: Any = getattr(messages, names[one.name])
        self.member.answered(one.number, kind(success=code == 200, errCode=code, errMsg="x", **fields), self.now)
        self.poll()

    def fail(self, fault: Fault = LOST) -> None:
        """End the oldest call without an answer."""
        self.member.failed(self.asks.pop(0).number, fault, self.now)
        self.poll()

    def order(self, kind: int, partitions: list[Partition]) -> None:
        """Answer a heartbeat with an event."""
        texts = [str(Subscription("g_1", "g", one)) for one in partitions]
        self.answer(event=messages.EventProto(rebalanceId=7, opType=kind, status=0, subscribeInfo=texts))


def joined(**options: Any) -> Driver:
    """Return a member that a master knows; its first heartbeat is under way."""
    driver = Driver(**options)
    driver.answer(notAllocated=True)
    assert driver.member.life is Life.MEMBER
    return driver


def holding(**options: Any) -> Driver:
    """Return a member that holds all partitions, and has told the master."""
    driver = joined(**options)
    driver.order(10, PARTITIONS)
    for _ in PARTITIONS:
        driver.answer(currOffset=28, maxOffset=56)
    assert driver.orders == [Hold(one, 28, 56) for one in PARTITIONS]
    driver.orders.clear()
    driver.ask("HeartRequestC2M")
    driver.answer(notAllocated=False)
    return driver


def test_joining() -> None:
    driver = Driver(topics={"t": ("a", "b"), "u": ()}, user="alice", password="secret")
    message = driver.ask("RegisterRequestC2M").message
    assert (message.clientId, message.groupName, list(message.topicList)) == ("g_1", "g", ["t", "u"])
    assert list(message.topicCondition) == ["t#a,b"]
    assert (message.requireBound, message.notAllocated, message.sessionTime) == (False, True, 100_000)
    assert message.authInfo.authInfo.userName == "alice"
    driver.answer(notAllocated=True)
    assert driver.ask("HeartRequestC2M").message.reportSubscribeInfo is False


def test_each_master_is_asked_once_in_a_round_and_rounds_wait_longer() -> None:
    driver = Driver(masters=MASTERS)
    waits = []
    for _ in range(9):
        seen = []
        for _ in MASTERS:
            seen.append(driver.ask("RegisterRequestC2M").address)
            driver.fail(Fault("refused") if len(seen) == 1 else Fault("is not master now", "StandbyException"))
        assert sorted(seen) == sorted(MASTERS)
        waits.append(driver.member.due() - driver.now)
        driver.poll(waits[-1])
    assert all(0.8 * 2**i <= wait <= 2**i for i, wait in enumerate(waits[:6]))
    assert all(48 <= wait <= 60 for wait in waits[6:])
    assert driver.member.trouble == Fault("is not master now", "StandbyException")


@pytest.mark.parametrize("code", [424, 425, 426, 427, 428, 429, 430, 431, 450, 455])
def test_a_refusal_is_told_at_once(code: int) -> None:
    driver = Driver(masters=MASTERS)
    driver.answer(code)
    assert driver.orders == [Refusal(code, "x")]
    assert driver.member.due() == driver.now + 10


def test_the_result_of_an_event_is_reported_at_once() -> None:
    driver = joined()
    driver.order(10, PARTITIONS[:2])
    assert [one.address for one in driver.asks] == [BROKER, BROKER]
    driver.answer(currOffset=28)
    assert [one.name for one in driver.asks] == ["RegisterRequestC2B"]
    driver.answer(currOffset=56)
    message = driver.ask("HeartRequestC2M").message
    assert message.reportSubscribeInfo
    assert list(message.subscribeInfo) == [str(Subscription("g_1", "g", one)) for one in PARTITIONS[:2]]
    assert (message.event.rebalanceId, message.event.opType, message.event.status) == (7, 10, 2)
    driver.fail()
    driver.poll(2)
    assert driver.ask("HeartRequestC2M").message.event.rebalanceId == 7  # until a master has it
    driver.answer()
    driver.poll(10)
    assert not driver.asks[0].message.HasField("event")


def test_every_sixth_heartbeat_has_a_full_report() -> None:
    driver = holding()
    reports = []
    for _ in range(12):
        driver.poll(10)
        while driver.asks:
            if driver.asks[0].name == "HeartRequestC2M":
                reports.append(driver.asks[0].message.reportSubscribeInfo)
            driver.answer()
    assert [i for i, full in enumerate(reports) if full] == [5, 11]


@pytest.mark.parametrize(("consumed", "status"), [(True, 0), (False, 1)])
def test_a_partition_is_given_back_when_its_last_pack_has_its_end(consumed: bool, status: int) -> None:
    driver = holding()
    driver.poll(10)
    driver.asks.sort(key=lambda one: one.name != "HeartRequestC2M")
    driver.order(20, PARTITIONS[:1])
    assert driver.orders == [Release(PARTITIONS[0], driver.now + 3)]
    driver.asks.clear()
    driver.poll(1)
    assert driver.asks == []
    driver.member.released(PARTITIONS[0].key, consumed, driver.now)
    driver.poll()
    message = driver.ask("RegisterRequestC2B").message
    assert (message.opType, message.readStatus, message.partitionId) == (32, status, 0)
    driver.answer(411)  # whatever it says
    message = driver.ask("HeartRequestC2M").message
    assert message.event.opType == 20
    assert len(message.subscribeInfo) == 2


def test_a_partition_that_its_old_owner_has_is_tried_again() -> None:
    driver = joined()
    driver.order(10, PARTITIONS[:1])
    for _ in range(4):
        driver.ask("RegisterRequestC2B")
        driver.answer(410)
        assert driver.member.due() == driver.now + 1
        driver.poll(1)
    driver.answer(410)
    message = driver.ask("HeartRequestC2M").message
    assert message.reportSubscribeInfo
    assert (message.event.rebalanceId, list(message.subscribeInfo)) == (7, [])
    assert driver.orders == [Untaken(PARTITIONS[0], 410, "x")]


def test_partitions_of_other_topics_are_not_taken() -> None:
    driver = joined()
    other = PARTITIONS[0]._replace(topic="other")
    driver.order(10, [other, PARTITIONS[1]])
    assert driver.ask("RegisterRequestC2B").message.topicName == PARTITIONS[1].topic
    assert driver.member.trouble is not None
    assert "'1:other:0', whose topic was not asked for" in driver.member.trouble.text
    driver.answer(currOffset=0, maxOffset=0)
    message = driver.ask("HeartRequestC2M").message
    assert [text.rpartition("#")[2] for text in message.subscribeInfo] == ["t:1"]


def test_what_a_master_says_is_kept_printable_and_short() -> None:
    driver = Driver()
    said = "no \x1b[31m\nred" * 1000
    one = driver.asks.pop(0)
    refused = messages.RegisterResponseM2C(success=False, errCode=450, errMsg=said)
    driver.member.answered(one.number, refused, driver.now)
    driver.poll()
    (refusal,) = driver.orders
    assert refusal.text.startswith(r"no \x1b[31m\nredno")
    assert len(refusal.text) < 2000
    assert driver.member.troubled is None  # it is an answer
    driver.poll(60)
    one = driver.asks.pop(0)
    driver.member.answered(one.number, messages.RegisterResponseM2C(success=False, errCode=1, errMsg=said), driver.now)
    assert driver.member.trouble is not None
    assert driver.member.trouble.text.startswith(r"1: no \x1b[31m\nred")
    assert driver.member.troubled == driver.now


def test_a_registration_without_an_answer_is_taken_back_in_the_end() -> None:
    driver = joined(register_rounds=2)
    driver.order(10, PARTITIONS[:1])
    driver.fail()
    driver.poll(1)
    driver.fail()
    assert driver.ask("RegisterRequestC2B").message.opType == 32


def test_what_a_broker_refuses_is_dropped_and_told() -> None:
    driver = holding()
    driver.member.lost(PARTITIONS[1].key, 412, driver.now)
    driver.poll()
    assert driver.orders == [Drop(PARTITIONS[1], 412)]
    message = driver.ask("HeartRequestC2M").message
    assert (message.reportSubscribeInfo, len(message.subscribeInfo)) == (True, 2)
    assert not message.HasField("event")


@pytest.mark.parametrize(
    ("code", "failures", "dropped"),
    [(200, [f"411:{PARTITIONS[2]}", "nonsense"], {2: 411}), (415, [], {0: 415, 1: 415, 2: 415}), (500, [], {})],
)
def test_heartbeats_to_brokers(code: int, failures: list[str], dropped: dict[int, int]) -> None:
    driver = holding()
    driver.poll(5)
    message = driver.ask("HeartBeatRequestC2B").message
    assert list(message.partitionInfo) == [str(one) for one in PARTITIONS]
    driver.answer(code, failureInfo=failures)
    assert driver.orders == [Drop(PARTITIONS[i], code) for i, code in dropped.items()]


def test_a_master_that_has_forgotten_is_told_what_is_held() -> None:
    driver = holding()
    driver.poll(10)
    driver.asks = [one for one in driver.asks if one.name == "HeartRequestC2M"]
    driver.answer(411)
    message = driver.ask("RegisterRequestC2M").message
    assert len(message.subscribeInfo) == 3
    assert driver.orders == []


def test_credentials_are_given_where_they_are_asked_for() -> None:
    driver = joined(user="alice", password="secret")
    driver.answer(requireAuth=True)
    driver.poll(10)
    proof = driver.ask("HeartRequestC2M").message.authInfo.authInfo
    assert proof.userName == "alice"
    assert proof.timestamp == int(driver.now * 1000)
    assert proof.signature == Signature.make("alice", "secret", proof.timestamp, proof.nonce).signature
    driver.answer()
    driver.poll(10)
    assert driver.ask("HeartRequestC2M").message.HasField("authInfo")  # from then on
    assert "secret" not in repr(MemberOptions(MASTERS, "c", "g", {}, password="secret"))


def test_tokens_and_ids_come_back() -> None:
    driver = Driver()
    rules = {"defFlowCheckId": 5, "defFlowControlInfo": "[]", "groupFlowCheckId": 6, "groupFlowControlInfo": " "}
    driver.answer(
        notAllocated=True, qryPriorityId=301, authorizedInfo=messages.MasterAuthorizedInfo(visitAuthorizedToken=9),
        **rules,
    )  # fmt: skip
    assert driver.member.rules == {"cluster": "[]", "group": " "}
    message = driver.ask("HeartRequestC2M").message
    assert (message.defFlowCheckId, message.groupFlowCheckId, message.qryPriorityId) == (5, 6, 301)
    driver.order(10, PARTITIONS[:1])
    message = driver.ask("RegisterRequestC2B").message
    assert (message.authInfo.visitAuthorizedToken, message.qryPriorityId) == (9, 301)


def test_where_a_bound_group_begins() -> None:
    driver = Driver(bound=True, session="s", members=1, offsets={PARTITIONS[0].key: 280})
    message = driver.ask("RegisterRequestC2M").message
    assert (message.requireBound, message.sessionKey, message.totalCount) == (True, "s", 1)
    assert message.requiredPartition == "1:t:0=280"
    driver.answer(notAllocated=True)
    driver.order(10, PARTITIONS[:2])
    first, second = (one.message for one in driver.asks)
    assert (first.currOffset, second.HasField("currOffset")) == (280, False)


@pytest.mark.parametrize("first_read", [0, 1, 2])
def test_where_reading_begins(first_read: int) -> None:
    driver = joined(first_read=first_read)
    driver.order(10, PARTITIONS[:1])
    assert driver.ask("RegisterRequestC2B").message.readStatus == first_read
    driver.answer(currOffset=28)
    driver.answer()
    driver.member.lost(PARTITIONS[0].key, 411, driver.now)
    driver.poll()
    driver.order(10, PARTITIONS[:1])
    assert driver.ask("RegisterRequestC2B").message.readStatus == 0


def test_leaving() -> None:
    driver = holding()
    driver.member.close(driver.now)
    driver.poll()
    assert [type(one) for one in driver.orders] == [Release] * 3
    for one in PARTITIONS:
        driver.member.released(one.key, True, driver.now)
    driver.poll()
    assert [one.message.opType for one in driver.asks] == [32, 32, 32]
    driver.answer()
    driver.fail()
    driver.answer()
    driver.ask("CloseRequestC2M")
    driver.fail()
    driver.ask("CloseRequestC2M")  # one lost call would leave the partitions to a time limit
    driver.fail()
    assert driver.member.life is Life.GONE
    driver.member.close(driver.now)
    driver.poll()
    assert driver.asks == []


def test_leaving_before_a_master_was_found() -> None:
    driver = Driver()
    driver.member.close(driver.now)
    driver.fail(Fault("no connection", sent=False))
    driver.poll(60)
    assert driver.member.life is Life.GONE
    assert driver.asks == []


def test_states_change_in_one_way_alone() -> None:
    holdings = Holdings()
    one = holdings.want(PARTITIONS[0], 0)
    with pytest.raises(ValueError, match="1:t:0 is there already"):
        holdings.want(PARTITIONS[0], 0)
    with pytest.raises(ValueError, match="cannot become held: it is wanted"):
        holdings.enter(one, State.HELD, 0)
    holdings.remove(one)
    with pytest.raises(ValueError, match="cannot become registering"):
        holdings.enter(one, State.REGISTERING, 0)


def test_a_bound_member_begins_where_it_is_told_though_others_were_first() -> None:
    driver = joined(bound=True, session="s", members=2, offsets={PARTITIONS[0].key: 280})
    texts = [str(Subscription("g_1", "g", PARTITIONS[0]))]
    event = messages.EventProto(rebalanceId=7, opType=10, status=0, subscribeInfo=texts)
    driver.answer(notAllocated=False, event=event)
    assert driver.ask("RegisterRequestC2B").message.currOffset == 280


def test_rules_stay_where_an_answer_has_none() -> None:
    driver = Driver()
    driver.answer(notAllocated=True, defFlowCheckId=5, defFlowControlInfo="[]")
    driver.answer()
    driver.poll(10)
    assert driver.member.rules == {"cluster": "[]"}
    assert driver.ask("HeartRequestC2M").message.defFlowCheckId == 5


def test_a_broker_that_asks_gets_credentials() -> None:
    driver = joined(user="alice", password="secret")
    driver.order(10, PARTITIONS[:1])
    assert not driver.ask("RegisterRequestC2B").message.authInfo.authAuthorizedToken
    driver.answer(415)
    assert driver.ask("RegisterRequestC2B").message.authInfo.authAuthorizedToken.startswith("alice ")
    driver.answer(currOffset=28)
    driver.answer()
    driver.poll(5)
    assert driver.ask("HeartBeatRequestC2B").message.authInfo.authAuthorizedToken.startswith("alice ")
    driver.answer(415)
    assert driver.orders[1:] == [Drop(PARTITIONS[0], 415)]


def test_a_broker_that_asks_with_a_heartbeat_is_asked_again_before_anything_is_dropped() -> None:
    driver = holding(user="alice", password="secret")
    driver.poll(5)
    driver.answer(415)
    assert driver.ask("HeartBeatRequestC2B").message.authInfo.authAuthorizedToken.startswith("alice ")
    assert driver.orders == []


def test_who_is_refused_gives_everything_back() -> None:
    driver = holding()
    driver.poll(10)
    driver.asks = [one for one in driver.asks if one.name == "HeartRequestC2M"]
    driver.answer(411)
    driver.answer(425)
    assert driver.orders == [Refusal(425, "x"), *(Release(one, driver.now + 3) for one in PARTITIONS)]
    assert driver.member.life is Life.JOINING
    assert driver.member.due() > driver.now


def test_a_member_leaves_at_once_whatever_was_under_way() -> None:
    driver = joined()
    driver.member.close(driver.now)
    driver.poll()
    driver.answer()  # the heartbeat
    driver.ask("CloseRequestC2M")


def test_due_is_now_while_something_is_to_be_taken() -> None:
    driver = holding()
    driver.member.close(driver.now)
    assert driver.member.due() < driver.now
    driver.poll()
    driver.member.released(PARTITIONS[0].key, True, driver.now)
    assert driver.member.due() < driver.now


def test_a_master_that_fails_again_and_again_is_left() -> None:
    driver = joined(masters=MASTERS)
    first = driver.asks[0].address
    for _ in range(8):
        assert driver.ask("HeartRequestC2M").address == first
        driver.answer(500)
        driver.poll(10)
    assert driver.ask("RegisterRequestC2M").address != first
    assert driver.member.trouble == Fault("500: x")


def test_a_report_that_was_refused_is_made_again() -> None:
    driver = holding()
    driver.member.lost(PARTITIONS[0].key, 411, driver.now)
    driver.poll()
    driver.answer(500)
    driver.poll(10)
    driver.asks = [one for one in driver.asks if one.name == "HeartRequestC2M"]
    assert driver.ask("HeartRequestC2M").message.reportSubscribeInfo


def test_a_master_that_forgets_at_once_is_not_asked_without_a_pause() -> None:
    driver = joined()
    driver.answer(411)
    assert driver.asks == []
    assert driver.member.due() == driver.now + 1


def test_the_result_of_a_forgotten_event_is_not_told() -> None:
    """A master would take it for that of the event that it has given since."""
    driver = joined()
    driver.order(10, PARTITIONS[:1])
    driver.poll(10)
    taking, beating = driver.asks
    driver.asks = [beating]
    driver.answer(411)
    driver.answer(notAllocated=True)
    driver.answer()
    assert driver.asks == []
    driver.asks = [taking]
    driver.answer(currOffset=28)
    told = [one.message for one in driver.asks if one.name == "HeartRequestC2M"]
    assert [one.reportSubscribeInfo for one in told] == [True]
    assert not told[0].HasField("event")


def test_a_late_heartbeat_says_nothing_of_what_was_taken_since() -> None:
    driver = holding()
    driver.poll(5)
    (beat,) = driver.asks
    driver.asks.clear()
    driver.member.lost(PARTITIONS[0].key, 411, driver.now)
    driver.poll()
    driver.order(10, PARTITIONS[:1])
    driver.poll(1)
    driver.answer(currOffset=28)
    driver.orders.clear()
    driver.asks = [beat]
    driver.answer(failureInfo=[f"411:{PARTITIONS[0]}"])
    assert driver.orders == []


def test_all_partitions_of_a_broker_that_wants_credentials_are_taken_at_once() -> None:
    """The registrations travel together: each is refused for itself, and each is worth another try."""
    driver = joined(user="alice", password="secret")
    driver.order(10, PARTITIONS)
    for _ in PARTITIONS:
        driver.answer(415)
    assert [one.message.authInfo.authAuthorizedToken.split()[0] for one in driver.asks] == ["alice"] * 3
    for _ in PARTITIONS:
        driver.answer(currOffset=28)
    assert driver.orders == [Hold(one, 28) for one in PARTITIONS]


def test_a_heartbeat_without_credentials_is_no_reason_to_lose_partitions() -> None:
    """It was under way when the broker asked for credentials in another answer."""
    driver = joined(user="alice", password="secret")
    driver.order(10, PARTITIONS[:1])
    driver.answer()
    driver.answer()
    driver.poll(5.0)
    assert [one.name for one in driver.asks] == ["HeartBeatRequestC2B"]
    beat = driver.asks.pop()
    driver.poll(5.0)
    driver.order(10, PARTITIONS[1:2])
    driver.answer(415)
    driver.asks.append(beat)
    driver.orders.clear()
    driver.asks.reverse()
    driver.answer(415)
    assert not driver.orders
    assert [one.name for one in driver.asks] == ["RegisterRequestC2B", "HeartBeatRequestC2B"]
    assert driver.asks[1].message.authInfo.authAuthorizedToken


def test_an_answer_that_was_lost_may_have_had_an_event() -> None:
    """A master gives an event once, and waits ten balances for its result: any result makes it divide anew."""
    driver = holding()
    driver.poll(10.0)
    driver.asks.sort(key=lambda one: one.name != "HeartRequestC2M")
    driver.fail()
    driver.poll(1.0)
    (beat,) = (one.message for one in driver.asks if one.name == "HeartRequestC2M")
    assert beat.event.rebalanceId > 0
    assert (beat.event.status, list(beat.event.subscribeInfo)) == (2, [])
    assert beat.reportSubscribeInfo
    assert len(beat.subscribeInfo) == len(PARTITIONS)
    driver.asks.sort(key=lambda one: one.name != "HeartRequestC2M")
    driver.answer()
    driver.poll(10.0)
    (beat,) = (one.message for one in driver.asks if one.name == "HeartRequestC2M")
    assert not beat.HasField("event")


def test_no_event_was_lost_while_one_is_under_way() -> None:
    """Its result must not be told before it is there: others would get what this member has not given back."""
    driver = joined()
    driver.order(10, PARTITIONS)
    driver.poll(10.0)
    driver.asks.sort(key=lambda one: one.name != "HeartRequestC2M")
    driver.fail()
    driver.poll(1.0)
    (beat,) = (one.message for one in driver.asks if one.name == "HeartRequestC2M")
    assert not beat.HasField("event")


def test_members_of_a_bound_group_wait_for_a_lost_event() -> None:
    """A result ends the group's first assignment, in which alone the offsets that members name count."""
    driver = joined(bound=True, session="s", members=1)
    driver.fail()
    driver.poll(1.0)
    assert not driver.ask("HeartRequestC2M").message.HasField("event")


def test_what_is_given_back_behind_a_refusal_is_reported_at_once() -> None:
    """The master that takes the member again is told that it holds what its packs still keep: it must hear the end."""
    driver = holding()
    driver.poll(10.0)
    driver.asks = [one for one in driver.asks if one.name == "HeartRequestC2M"]
    driver.answer(411)
    driver.answer(450)
    driver.poll(10.0)
    driver.asks = [one for one in driver.asks if one.name == "RegisterRequestC2M"]
    assert len(driver.ask("RegisterRequestC2M").message.subscribeInfo) == len(PARTITIONS)
    driver.answer()
    driver.answer(notAllocated=False)
    assert not driver.asks
    for one in PARTITIONS:
        driver.member.released(one.key, False, driver.now)
    driver.poll()
    for _ in PARTITIONS:
        assert driver.asks[0].name == "RegisterRequestC2B"
        driver.answer()
    assert len(driver.ask("HeartRequestC2M").message.subscribeInfo) == 2  # it left with the first one's end
    driver.answer()
    message = driver.ask("HeartRequestC2M").message
    assert message.reportSubscribeInfo
    assert not message.subscribeInfo


def test_a_broker_that_has_moved_is_registered_anew() -> None:
    driver = holding()
    moved = Partition.read("1:b9:8123#t:0")
    driver.poll(10)
    driver.asks = [one for one in driver.asks if one.name == "HeartRequestC2M"]
    driver.order(10, [moved, PARTITIONS[1]])
    assert driver.orders == [Drop(PARTITIONS[0], 0)]
    (ask,) = driver.asks
    assert (ask.address, ask.message.opType) == (Address("b9", 8123), 31)
    driver.answer(currOffset=56)
    assert driver.orders[1:] == [Hold(moved, 56)]
    assert len(driver.ask("HeartRequestC2M").message.subscribeInfo) == 3


def test_rules_that_an_operator_takes_back_are_followed_no_more() -> None:
    """The master then tells no number, as one that never had any."""
    driver = joined()
    driver.answer(groupFlowCheckId=6, groupFlowControlInfo="[1]", defFlowCheckId=-2, defFlowControlInfo=" ")
    assert driver.member.rules == {"group": "[1]"}
    driver.poll(10.0)
    driver.answer(groupFlowCheckId=6, groupFlowControlInfo=" ")
    assert driver.member.rules == {"group": "[1]"}
    driver.poll(10.0)
    driver.answer(groupFlowCheckId=-2, groupFlowControlInfo=" ")
    assert driver.member.rules == {"group": " "}
    driver.poll(10.0)
    assert driver.ask("HeartRequestC2M").message.groupFlowCheckId == -2


def test_a_master_that_may_have_taken_a_member_hears_that_it_leaves() -> None:
    """The registration was sent, and its answer did not come: others would wait for the master's time limit."""
    driver = Driver(masters=MASTERS[:2])
    driver.fail()
    driver.fail(Fault("is not master now", "StandbyException"))
    driver.member.close(driver.now)
    driver.poll()
    assert driver.ask("CloseRequestC2M").address in MASTERS
    driver.fail(Fault("is not master now", "StandbyException"))
    driver.answer()
    assert driver.member.life is Life.GONE


@pytest.mark.parametrize("fault", [Fault("no connection", sent=False), Fault("not now", "ServerNotReadyException")])
def test_a_master_that_was_not_reached_hears_nothing(fault: Fault) -> None:
    driver = Driver()
    driver.fail(fault)
    driver.member.close(driver.now)
    driver.poll()
    assert not driver.asks
    assert driver.member.life is Life.GONE
