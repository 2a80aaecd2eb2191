"""A member that reads a partition from another place: what it asks of the broker, and what it tells whoever waits."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.consumer.group.asking import EARLIEST, LATEST, Drop, Hold, Order, Release, Reply
from dataproxy.consumer.group.holdings import State
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Subscription
from tests.unit.consumer.test_member import PARTITIONS, Driver, holding

FIRST = PARTITIONS[0]


def sought(offset: int = 280, number: int = 5) -> Driver:
    """Return a member that seeks its first partition, whose last pack has its end."""
    driver = holding()
    driver.member.seek(FIRST.key, offset, number, driver.now)
    driver.poll()
    assert driver.orders == [Release(FIRST, driver.now, moves=True)]
    driver.orders.clear()
    assert driver.asks == []  # not before the last pack has its end
    driver.member.released(FIRST.key, False, driver.now)
    driver.poll()
    return driver


def begins(driver: Driver) -> tuple[int, int, int | None]:
    """Return what the only call under way, a registration, says of the place: (operation, status, offset)."""
    message = driver.ask("RegisterRequestC2B").message
    return message.opType, message.readStatus, message.currOffset if message.HasField("currOffset") else None


def taken_away(driver: Driver, kind: int = 20) -> None:
    """Let the master take the first partition away."""
    driver.poll(10)
    (heartbeat,) = [one for one in driver.asks if one.name == "HeartRequestC2M"]
    driver.asks.remove(heartbeat)
    texts = [str(Subscription("g_1", "g", FIRST))]
    event = messages.EventProto(rebalanceId=7, opType=kind, status=0, subscribeInfo=texts)
    answer = messages.HeartResponseM2C(success=True, errCode=200, errMsg="", event=event)
    driver.member.answered(heartbeat.number, answer, driver.now)
    driver.poll()


def test_an_offset_is_compared_with_the_end_before_anything_moves() -> None:
    driver = sought(280)
    assert begins(driver) == (31, 0, None)
    driver.answer(currOffset=28, maxOffset=280)
    assert begins(driver) == (31, 0, 280)
    assert driver.orders == []
    driver.answer(currOffset=280, maxOffset=280)
    assert driver.orders == [Hold(FIRST, 280, 280), Reply(5, "", 280)]
    assert driver.asks == []  # the master has nothing to learn


def test_an_offset_behind_the_end_moves_nothing() -> None:
    driver = sought(308)
    driver.answer(currOffset=28, maxOffset=280)
    assert driver.orders == [Hold(FIRST, 28, 280), Reply(5, "beyond", 28, 280)]


@pytest.mark.parametrize(
    ("offset", "status", "sent"), [(EARLIEST, 0, 0), (LATEST, 2, None), (0, 0, 0)], ids=["earliest", "latest", "zero"]
)
def test_places_that_need_no_comparison(offset: int, status: int, sent: int | None) -> None:
    driver = sought(offset)
    assert begins(driver) == (31, status, sent)
    driver.answer(currOffset=84, maxOffset=280)
    assert driver.orders == [Hold(FIRST, 84, 280), Reply(5, "", 84)]


def test_a_broker_that_does_not_say_where_the_end_is_is_believed() -> None:
    driver = sought(280)
    driver.answer(currOffset=28)
    driver.answer(currOffset=140)
    assert driver.orders == [Hold(FIRST, 140), Reply(5, "", 140)]


def test_a_partition_stays_reported_while_it_is_sought() -> None:
    driver = holding()
    driver.member.seek(FIRST.key, 280, 5, driver.now)
    driver.poll()
    keys = [[one.key for one in driver.member.holdings.reported]]
    driver.member.released(FIRST.key, False, driver.now)
    keys.append([one.key for one in driver.member.holdings.reported])
    driver.poll()
    keys.append([one.key for one in driver.member.holdings.reported])
    driver.answer(currOffset=28, maxOffset=280)
    driver.answer(currOffset=280, maxOffset=280)
    keys.append([one.key for one in driver.member.holdings.reported])
    assert keys == [[one.key for one in PARTITIONS]] * 4


def test_a_lost_call_is_made_again() -> None:
    driver = sought(EARLIEST)
    for _ in range(4):
        driver.fail()
        assert driver.orders == []
        driver.poll(1)
        assert begins(driver) == (31, 0, 0)
    driver.answer(currOffset=0, maxOffset=28)
    assert driver.orders == [Hold(FIRST, 0, 28), Reply(5, "", 0)]


def orders(driver: Driver, kind: type[Any]) -> list[Order]:
    return [one for one in driver.orders if type(one) is kind]


def test_a_broker_that_never_answers_gets_the_partition_back() -> None:
    driver = sought(EARLIEST)
    for _ in range(5):
        driver.asks = [one for one in driver.asks if one.name == "RegisterRequestC2B"]
        driver.fail()
        driver.poll(1)
    assert orders(driver, Reply) == [Reply(5, "revoked")]
    assert orders(driver, Drop) == [Drop(FIRST, 0)]
    asked = {one.name: one.message for one in driver.asks}
    assert asked["RegisterRequestC2B"].opType == 32
    assert asked["HeartRequestC2M"].reportSubscribeInfo


@pytest.mark.parametrize("code", [403, 411])
def test_a_broker_that_refuses_ends_the_partition(code: int) -> None:
    driver = sought(EARLIEST)
    driver.answer(code)
    assert orders(driver, Reply) == [Reply(5, "revoked")]
    assert orders(driver, Drop) == [Drop(FIRST, code)]
    message = driver.ask("HeartRequestC2M").message
    assert (message.reportSubscribeInfo, len(message.subscribeInfo)) == (True, 2)


@pytest.mark.parametrize("when", ["releasing", "waiting", "registering"])
def test_a_second_seek_takes_the_place_of_the_first(when: str) -> None:
    driver = holding() if when == "releasing" else sought(280)
    if when == "releasing":
        driver.member.seek(FIRST.key, 280, 5, driver.now)
    elif when == "waiting":
        driver.fail()
    driver.member.seek(FIRST.key, LATEST, 6, driver.now)
    driver.poll()
    assert orders(driver, Reply) == [Reply(5, "later")]
    if when == "releasing":
        driver.member.released(FIRST.key, False, driver.now)
        driver.poll()
    elif when == "waiting":
        driver.poll(1)
    else:
        driver.answer(currOffset=28, maxOffset=280)
        assert orders(driver, Hold) == []
    assert begins(driver) == (31, 2, None)
    driver.answer(currOffset=280, maxOffset=280)
    assert driver.orders[-2:] == [Hold(FIRST, 280, 280), Reply(6, "", 280)]


@pytest.mark.parametrize("when", ["releasing", "waiting", "registering"])
def test_a_partition_that_is_taken_away_while_it_is_sought(when: str) -> None:
    driver = holding() if when == "releasing" else sought(280)
    if when == "releasing":
        driver.member.seek(FIRST.key, 280, 5, driver.now)
        driver.poll()
        driver.orders.clear()
    elif when == "waiting":
        driver.fail()
    if when == "registering":
        (registering,) = driver.asks
        taken_away(driver)
        driver.asks.remove(registering)
        assert State.REGISTERING in {one.state for one in driver.member.holdings.within(*State)}
        kind: Any = messages.RegisterResponseB2C
        answer = kind(success=True, errCode=200, errMsg="", currOffset=28, maxOffset=280)
        driver.member.answered(registering.number, answer, driver.now)
        driver.poll()
    elif when == "waiting":
        driver.asks = [one for one in driver.asks if one.name != "RegisterRequestC2B"]
        driver.member._master_due = driver.now - 10  # the heartbeat comes before the next try
        holding_ = driver.member.holdings.get(FIRST.key)
        assert holding_ is not None
        holding_.due = driver.now + 60
        taken_away(driver)
    else:
        taken_away(driver)
        driver.member.released(FIRST.key, True, driver.now)
        driver.poll()
    assert orders(driver, Reply) == [Reply(5, "revoked")]
    assert [one.moves for one in orders(driver, Release)] == [False]
    leaving = [one.message for one in driver.asks if one.name == "RegisterRequestC2B"]
    assert [one.opType for one in leaving] == [32]
    assert orders(driver, Hold) == []


def test_a_member_that_leaves_while_it_seeks() -> None:
    driver = sought(280)
    driver.member.close(driver.now)
    driver.poll()
    assert orders(driver, Reply) == [Reply(5, "revoked")]
    assert [one.partition.key for one in orders(driver, Release)] == [one.key for one in PARTITIONS]
    driver.answer(currOffset=28, maxOffset=280)
    assert begins(driver)[0] == 32


def test_seeks_of_what_is_not_held() -> None:
    driver = holding()
    driver.member.seek("1:t:9", 0, 5, driver.now)
    driver.member.lost(FIRST.key, 411, driver.now)
    driver.member.seek(FIRST.key, 0, 6, driver.now)
    driver.member.close(driver.now)
    driver.member.seek(PARTITIONS[1].key, 0, 7, driver.now)
    driver.poll()
    assert orders(driver, Reply) == [Reply(number, "revoked") for number in (5, 6, 7)]


def test_a_partition_that_is_lost_while_its_last_pack_is_waited_for() -> None:
    driver = holding()
    driver.member.seek(FIRST.key, 0, 5, driver.now)
    driver.member.lost(FIRST.key, 412, driver.now)
    driver.poll()
    assert driver.orders[1:] == [Drop(FIRST, 412), Reply(5, "revoked")]
