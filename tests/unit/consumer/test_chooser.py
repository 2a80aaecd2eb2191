"""A member whose application chooses: what it asks, what it takes, and what it does with what it does not get."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dataproxy.consumer.group.asking import (
    EARLIEST,
    Address,
    Ask,
    Drop,
    Fault,
    Hold,
    Known,
    MemberOptions,
    Refusal,
    Release,
    Reply,
    Untaken,
)
from dataproxy.consumer.group.chooser import Chooser
from dataproxy.consumer.group.holdings import State
from dataproxy.consumer.group.membership import Life
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Partition

MASTERS = (Address("m1", 8715), Address("m2", 8715))
BROKERS = [Broker(1, "b1", 8123), Broker(2, "b2", 8123)]
ALL = [Partition(broker, "t", number) for broker in BROKERS for number in (0, 1)]
KEYS = [one.key for one in ALL]
META = "t#1:1:2:1,2:1:2:1"
LOST = Fault("no answer in time")
ANSWERS = {
    "RegisterRequestC2MV2": "RegisterResponseM2CV2", "HeartRequestC2MV2": "HeartResponseM2CV2",
    "GetPartMetaRequestC2M": "GetPartMetaResponseM2C", "CloseRequestC2M": "CloseResponseM2C",
    "RegisterRequestC2B": "RegisterResponseB2C", "HeartBeatRequestC2B": "HeartBeatResponseB2C",
}  # fmt: skip


class Driver:
    """A member under test, with the calls that it has made and that have no end yet."""

    def __init__(self, **options: Any) -> None:
        given = {"masters": MASTERS[:1], "client": "g_1", "group": "g", "topics": {"t": ()}, "members": 2, **options}
        self.member = Chooser(MemberOptions(**given), random.Random(1))
        self.now = 100.0
        self.asks: list[Ask] = []
        self.orders: list[Any] = []
        self.member.start(self.now)
        self.poll()

    def poll(self, after: float = 0.0) -> None:
        self.now += after
        for one in self.member.poll(self.now, int(self.now * 1000)):
            (self.asks if isinstance(one, Ask) else self.orders).append(one)

    def ask(self, name: str) -> Any:
        """Return the message of the only call under way with this name."""
        (one,) = [one for one in self.asks if one.name == name]
        return type(one.message).FromString(one.message.SerializeToString())

    def answer(self, name: str, code: int = 200, **fields: Any) -> None:
        """Answer the oldest call with a name."""
        one = next(one for one in self.asks if one.name == name)
        self.asks.remove(one)
        kind: Any = getattr(messages, ANSWERS[name])
        if "success" in kind.DESCRIPTOR.fields_by_name:
            fields["success"] = code == 200
        self.member.answered(one.number, kind(errCode=code, errMsg="x", **fields), self.now)
        self.poll()

    def fail(self, name: str) -> None:
        one = next(one for one in self.asks if one.name == name)
        self.asks.remove(one)
        self.member.failed(one.number, LOST, self.now)
        self.poll()

    def taken(self, offset: int = 28) -> None:
        """Let brokers register all that is asked for."""
        while any(one.name == "RegisterRequestC2B" for one in self.asks):
            self.answer("RegisterRequestC2B", currOffset=offset, maxOffset=280)

    def assign(self, *keys: str, number: int = 1) -> None:
        self.member.assign(dict.fromkeys(keys), number, self.now)
        self.poll()

    @property
    def held(self) -> list[str]:
        return [one.partition.key for one in self.member.holdings.within(State.HELD)]


def joined(**options: Any) -> Driver:
    """Return a member that knows what there is."""
    driver = Driver(**options)
    driver.answer("RegisterRequestC2MV2", brokerConfigId=7, brokerConfigList=[str(one) for one in BROKERS])
    driver.answer("HeartRequestC2MV2", brokerConfigId=7, topicMetaInfoId=9, topicMetaInfoList=[META])
    driver.answer("GetPartMetaRequestC2M", brokerConfigId=7, topicMetaInfoId=9)
    assert driver.orders == [Known(tuple(ALL))]
    driver.orders.clear()
    return driver


def holding(*keys: str) -> Driver:
    """Return a member that holds partitions, and has told the master."""
    driver = joined()
    driver.assign(*(keys or KEYS))
    driver.taken()
    driver.answer("HeartRequestC2MV2")
    if any(one.name == "HeartRequestC2MV2" for one in driver.asks):
        driver.answer("HeartRequestC2MV2")
    driver.orders.clear()
    assert driver.asks == []
    return driver


def test_joining() -> None:
    driver = Driver(topics={"t": ("a", "b"), "u": ()}, node=1, members=3, user="alice", password="secret")
    message = driver.ask("RegisterRequestC2MV2")
    assert (message.nodeId, message.sourceCount, list(message.topicList)) == (1, 3, ["t", "u"])
    assert list(message.topicCondition) == ["t#a,b"]
    assert (message.subRepInfo.brokerConfigId, message.subRepInfo.topicMetaInfoId) == (-2, -2)
    assert (message.subRepInfo.lstAssignedTime, message.subRepInfo.reportSubInfo) == (-2, True)
    assert message.opsTaskInfo.csmFrmMaxOffsetCtrlId == -2
    assert message.authInfo.authInfo.userName == "alice"
    driver.answer("RegisterRequestC2MV2", brokerConfigId=7, brokerConfigList=["1:b1:8123"])
    assert driver.member.life is Life.MEMBER
    assert driver.ask("GetPartMetaRequestC2M").brokerConfigId == 7
    assert driver.ask("HeartRequestC2MV2").subRepInfo.reportSubInfo is False


def test_what_there_is_is_asked_every_ten_seconds_and_told_when_it_changes() -> None:
    driver = joined()
    asked = []
    for _ in range(30):
        driver.poll(1)
        for one in list(driver.asks):
            if one.name == "GetPartMetaRequestC2M":
                asked.append(driver.now)
            driver.answer(one.name)
    assert asked == [110.0, 120.0, 130.0]
    assert driver.orders == []
    driver.poll(10)
    driver.answer("GetPartMetaRequestC2M", topicMetaInfoId=10, topicMetaInfoList=["t#1:2:1:1,2:1:2:0,3:1:1:1"])
    (told,) = driver.orders
    assert [str(one) for one in told.partitions] == ["1:b1:8123#t:0", "1:b1:8123#t:10000"]  # 2 is closed, 3 unknown
    assert driver.member._topic_version == 10


def test_a_choice_is_taken_reported_and_given_back() -> None:
    driver = joined()
    driver.assign(KEYS[0], KEYS[3])
    assert driver.orders == [Reply(1)]
    assert [one.address for one in driver.asks if one.name == "RegisterRequestC2B"] == [
        Address("b1", 8123), Address("b2", 8123)
    ]  # fmt: skip
    driver.taken()
    assert driver.orders[1:] == [Hold(ALL[0], 28, 280), Hold(ALL[3], 28, 280)]
    driver.answer("HeartRequestC2MV2")
    report = driver.ask("HeartRequestC2MV2").subRepInfo
    assert (report.reportSubInfo, list(report.partSubInfo)) == (True, ["t#1:0,2:1"])
    assert report.lstAssignedTime == 100_000
    driver.answer("HeartRequestC2MV2")
    driver.orders.clear()
    driver.assign(KEYS[3], KEYS[1], number=2)
    assert driver.orders == [Release(ALL[0], driver.now + 3), Reply(2)]
    driver.member.released(KEYS[0], False, driver.now)
    driver.poll()
    operations = [one.message.opType for one in driver.asks if one.name == "RegisterRequestC2B"]
    assert operations == [31, 32]
    driver.taken()
    assert sorted(driver.held) == sorted([KEYS[1], KEYS[3]])


def test_partitions_that_are_not_there_change_nothing() -> None:
    driver = holding(KEYS[0])
    driver.member.assign({KEYS[1]: None, "1:t:9": None, "9:t:0": 0}, 5, driver.now)
    driver.poll()
    assert driver.orders == [Reply(5, "missing", keys=("1:t:9", "9:t:0"))]
    assert driver.held == [KEYS[0]]
    assert driver.asks == []


def test_places() -> None:
    driver = holding(KEYS[0], KEYS[1])
    driver.member.assign({KEYS[0]: 280, KEYS[1]: None, KEYS[2]: EARLIEST, KEYS[3]: 56}, 5, driver.now)
    driver.poll()
    assert driver.orders == [Release(ALL[0], driver.now, moves=True), Reply(5)]
    offsets = [one.message.currOffset for one in driver.asks if one.name == "RegisterRequestC2B"]
    assert offsets == [0, 56]
    driver.taken(56)
    driver.member.released(KEYS[0], False, driver.now)
    driver.poll()
    driver.taken(280)
    assert {one.partition.key: one.offset for one in driver.orders if isinstance(one, Hold)} == {
        KEYS[0]: 280, KEYS[2]: 56, KEYS[3]: 56
    }  # fmt: skip


def test_a_place_counts_once() -> None:
    driver = joined()
    driver.member.assign({KEYS[0]: 56}, 1, driver.now)
    driver.poll()
    driver.taken(56)
    driver.member.lost(KEYS[0], 411, driver.now)
    driver.poll()
    assert driver.orders[-1] == Drop(ALL[0], 411)
    driver.poll(1)
    message = driver.ask("RegisterRequestC2B")
    assert (message.opType, message.HasField("currOffset")) == (31, False)
    driver.taken(84)
    assert driver.held == [KEYS[0]]


@pytest.mark.parametrize("code", [410, 403, 500, 0])
def test_what_a_broker_does_not_give_is_asked_for_without_an_end(code: int) -> None:
    driver = joined()
    driver.assign(KEYS[0])
    asked = 0
    for _ in range(60):
        if any(one.name == "RegisterRequestC2B" for one in driver.asks):
            asked += 1
            if code:
                driver.answer("RegisterRequestC2B", code)
            else:
                driver.fail("RegisterRequestC2B")
        driver.poll(1)
    assert 10 <= asked <= 60
    told = [one for one in driver.orders if isinstance(one, Untaken)]
    assert (told[0].partition, told[0].code, bool(told[0].why)) == (ALL[0], code, True)
    assert len(told) >= 4
    driver.poll(10)
    driver.taken()
    assert driver.held == [KEYS[0]]


def test_a_choice_that_is_taken_back_while_it_is_asked_for() -> None:
    driver = joined()
    driver.assign(KEYS[0])
    driver.assign(number=2)
    driver.answer("RegisterRequestC2B", currOffset=28, maxOffset=280)
    assert driver.ask("RegisterRequestC2B").opType == 32
    driver.taken()
    assert (driver.held, len(driver.member.holdings)) == ([], 0)


def test_a_choice_that_comes_back_while_it_is_given_back() -> None:
    driver = holding(KEYS[0])
    driver.assign(number=2)
    driver.member.assign({KEYS[0]: 140}, 3, driver.now)
    driver.member.released(KEYS[0], False, driver.now)
    driver.poll()
    assert driver.ask("RegisterRequestC2B").opType == 32
    driver.answer("RegisterRequestC2B")
    message = driver.ask("RegisterRequestC2B")
    assert (message.opType, message.currOffset) == (31, 140)
    driver.taken(140)
    assert driver.orders[-1] == Hold(ALL[0], 140, 280)


def test_a_master_that_has_forgotten_is_told_what_is_held() -> None:
    driver = holding(KEYS[0])
    driver.poll(10)
    driver.answer("HeartRequestC2MV2", 411)
    message = driver.ask("RegisterRequestC2MV2")
    assert list(message.subRepInfo.partSubInfo) == ["t#1:0"]
    assert message.subRepInfo.brokerConfigId == -2
    assert driver.held == [KEYS[0]]


def test_a_number_that_another_member_has() -> None:
    driver = Driver()
    driver.answer("RegisterRequestC2MV2", 430)
    assert driver.orders == [Refusal(430, "x")]
    driver.poll(10)
    driver.answer("RegisterRequestC2MV2")
    assert driver.member.life is Life.MEMBER


def test_a_member_that_is_refused_gives_back_and_takes_again() -> None:
    driver = holding(KEYS[0])
    driver.poll(10)
    driver.answer("HeartRequestC2MV2", 411)
    driver.answer("RegisterRequestC2MV2", 430)
    assert [type(one) for one in driver.orders] == [Refusal, Release]
    driver.member.released(KEYS[0], False, driver.now)
    driver.poll()
    driver.taken()
    assert len(driver.member.holdings) == 0
    driver.poll(10)
    driver.answer("RegisterRequestC2MV2", brokerConfigId=7, brokerConfigList=[str(one) for one in BROKERS])
    assert driver.ask("RegisterRequestC2B").opType == 31
    driver.taken()
    assert driver.held == [KEYS[0]]


def test_a_choice_of_a_member_that_is_refused_waits_until_it_is_taken() -> None:
    driver = joined()
    driver.poll(10)
    driver.answer("HeartRequestC2MV2", 411)
    driver.answer("RegisterRequestC2MV2", 430)
    driver.member.assign({KEYS[0]: 56, KEYS[1]: None}, 5, driver.now)
    driver.poll()
    assert driver.orders[-1] == Reply(5)
    assert [one for one in driver.asks if one.name == "RegisterRequestC2B"] == []
    driver.poll(10)
    driver.answer("RegisterRequestC2MV2")
    messages_ = [one.message for one in driver.asks if one.name == "RegisterRequestC2B"]
    assert [(one.partitionId, one.HasField("currOffset")) for one in messages_] == [(0, True), (1, False)]


def test_a_broker_that_has_moved() -> None:
    driver = holding(KEYS[0])
    driver.poll(10)
    driver.answer("HeartRequestC2MV2", brokerConfigId=8, brokerConfigList=["1:b9:8123", "2:b2:8123"])
    moved = ALL[0]._replace(broker=Broker(1, "b9", 8123))
    assert driver.orders == [Drop(ALL[0], 0)]
    (ask,) = [one for one in driver.asks if one.name == "RegisterRequestC2B"]
    assert ask.address == Address("b9", 8123)
    driver.taken(56)
    assert driver.orders[1:] == [Hold(moved, 56, 280)]


def test_texts_that_are_none_are_passed_over() -> None:
    driver = joined()
    driver.poll(10)
    driver.answer(
        "GetPartMetaRequestC2M", topicMetaInfoId=10, topicMetaInfoList=["nonsense", "t#1:1:1:1"], brokerConfigId=8,
        brokerConfigList=["x", "1:b1:8123"],
    )  # fmt: skip
    assert driver.orders == [Known((ALL[0],))]
    assert driver.member.trouble is not None


def test_a_question_without_an_answer_is_asked_again() -> None:
    driver = Driver()
    driver.answer("RegisterRequestC2MV2", brokerConfigId=7, brokerConfigList=[str(one) for one in BROKERS])
    driver.fail("GetPartMetaRequestC2M")
    assert driver.orders == []
    driver.answer("HeartRequestC2MV2")
    driver.poll(10)
    driver.answer("GetPartMetaRequestC2M", 500)
    driver.poll(10)
    driver.answer("GetPartMetaRequestC2M", topicMetaInfoId=9, topicMetaInfoList=[META])
    assert driver.orders == [Known(tuple(ALL))]


def test_a_standby_hands_over_to_the_next_master() -> None:
    driver = Driver(masters=MASTERS)
    first = driver.asks[0].address
    driver.fail("RegisterRequestC2MV2")
    assert {first, driver.asks[0].address} == set(MASTERS)


def test_leaving() -> None:
    driver = holding(KEYS[0])
    driver.member.close(driver.now)
    driver.member.released(KEYS[0], False, driver.now)
    driver.poll()
    driver.taken()
    driver.answer("CloseRequestC2M")
    assert driver.member.life is Life.GONE
    driver.orders.clear()
    driver.assign(KEYS[0], number=5)
    assert driver.orders == [Reply(5, "gone")]
