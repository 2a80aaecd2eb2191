"""This hub as a broker: its calls at masters, against the hub's own master and against answers by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataproxy.hub.tubemq.brokers.enrolment import Enrolment
from dataproxy.hub.tubemq.brokers.joining import Call, Joining, JoiningTimes
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import RefusedError, failure, success
from dataproxy.hub.tubemq.cluster.layout import TopicAt
from dataproxy.masters.target import Address
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.deployed import Defaults, TopicText
from dataproxy.wire.tubemq.texts import Broker
from tests.support.mastercalls import WALL_MS, Cluster

HUB = Broker(3, "10.0.0.3", 8124)
ONE, TWO = Address("m1", 8715), Address("m2", 8715)
TIMES = JoiningTimes(period_s=8.0, pause_s=0.5, longest_pause_s=4.0)


def joining(*masters: Address, **more: Any) -> Joining:
    """Return a broker that knows masters."""
    return Joining(HUB, masters or (ONE,), "1.0", TIMES, **more)


def step(one: Joining, at: Cluster) -> list[str]:
    """Make the calls that are due; return their names."""
    made = []
    while (call := one.next_call(at.now)) is not None:
        made.append(call.name)
        one.answered(call, at.call(call.request), at.now)
    return made


def due(one: Joining, now: float) -> Call:
    """Return the call that has to be due."""
    call = one.next_call(now)
    assert call is not None
    assert one.next_call(now) is None  # one at a time
    return call


def test_a_hub_joins_a_hub() -> None:
    at = Cluster(admit=lambda broker: broker == HUB)
    one = joining()
    one.set_topics({"u": TopicAt(2)}, at.now)
    assert step(one, at) == ["RegisterRequestB2M"]
    assert [part.key for part in at.layout.partitions({"u"})] == ["3:u:0", "3:u:1"]
    assert (one.is_online, one.told.tokens, one.next_at) == (True, (1,), at.now + 8)
    at.wait(8)
    assert step(one, at) == ["HeartRequestB2M"]
    one.set_topics({"u": TopicAt(2)}, at.now)
    assert step(one, at) == []
    one.set_topics({"u": TopicAt(3)}, at.now)
    assert step(one, at) == ["HeartRequestB2M"]
    assert len(at.layout.partitions({"u"})) == 3
    at.wait(26)  # too late
    assert at.layout.partitions({"u"}) == []
    assert step(one, at) == ["HeartRequestB2M", "RegisterRequestB2M"]
    assert len(at.layout.partitions({"u"})) == 3
    one.end(at.now)
    assert step(one, at) == ["CloseRequestB2M"]
    assert (at.layout.partitions({"u"}), one.is_online, one.next_at) == ([], False, float("inf"))


def test_a_change_while_a_call_is_under_way_is_told_by_the_next_one() -> None:
    at = Cluster(admit=lambda broker: True)
    one = joining()
    step(one, at)
    at.wait(8)
    call = due(one, at.now)
    one.set_topics({"u": TopicAt(1)}, at.now)
    one.answered(call, at.call(call.request), at.now)
    assert step(one, at) == ["HeartRequestB2M"]
    assert len(at.layout.partitions({"u"})) == 1


def test_it_has_what_a_master_of_tubemq_declares() -> None:
    at = Cluster()
    at.master.brokers.declare(HUB, {"t": TopicAt(1), "v": TopicAt(2)})
    one = joining()
    assert step(one, at) == ["RegisterRequestB2M", "HeartRequestB2M"]
    assert one.told.topics == (TopicText("t", 1), TopicText("v", 2))
    assert len(at.layout.partitions({"v"})) == 2
    at.master.brokers.declare(HUB, {"v": TopicAt(3)})
    at.wait(8)
    assert step(one, at) == ["HeartRequestB2M", "HeartRequestB2M"]
    assert one.told.topics == (TopicText("v", 3),)
    assert len(at.layout.partitions({"v"})) == 3


def test_a_configuration_that_is_none_is_not_taken() -> None:
    one = joining()
    call = due(one, 0.0)
    answer = success(call.name, stopRead=False, stopWrite=False, takeConfInfo=True, brokerDefaultConfInfo="x")
    one.answered(call, answer, 0.0)
    assert (one.is_online, one.told.topics) == (True, ())
    assert due(one, 0.0).request.brokerDefaultConfInfo == str(Defaults())


def test_masters_are_tried_in_turn_and_then_after_a_pause() -> None:
    one = joining(ONE, TWO)
    now, pauses, asked = 0.0, [], []
    for _ in range(10):
        pauses.append(one.next_at - now)
        now = one.next_at
        call = due(one, now)
        asked.append(call.master)
        if len(asked) % 2:
            one.failed(call, "StandbyException: m1 is not master now", now)
        else:
            one.answered(call, failure(call.name, RefusedError(400, "create first")), now)
    assert asked == [ONE, TWO] * 5
    assert pauses == [0, 0, 0.5, 0, 1, 0, 2, 0, 4, 0]
    assert not one.is_online


def test_the_master_that_answered_stays_the_one() -> None:
    at = Cluster(admit=lambda broker: True)
    one = joining(ONE, TWO)
    one.failed(due(one, at.now), "refused", at.now)
    call = due(one, at.now)
    one.answered(call, at.call(call.request), at.now)
    at.wait(8)
    assert due(one, at.now).master == TWO


def test_it_goes_to_the_new_leader_at_once() -> None:
    at = Cluster(admit=lambda broker: True)
    one = joining(ONE)
    step(one, at)
    one.set_masters((TWO,), at.now)
    call = due(one, at.now)
    assert (call.master, call.name, one.is_online) == (TWO, "RegisterRequestB2M", False)
    one.answered(call, at.call(call.request), at.now)
    one.set_masters((ONE, TWO), at.now)
    assert one.next_call(at.now) is None
    at.wait(8)
    call = due(one, at.now)
    assert call.master == TWO
    one.set_masters((), at.now)
    one.answered(call, at.call(call.request), at.now)
    assert (one.is_online, one.next_call(at.now + 99)) == (False, None)


def test_a_late_answer_of_another_master_counts_for_nothing() -> None:
    at = Cluster(admit=lambda broker: True)
    one = joining(ONE)
    call = due(one, at.now)
    one.set_masters((TWO,), at.now)
    one.answered(call, at.call(call.request), at.now)
    assert not one.is_online
    assert due(one, at.now).master == TWO


def test_it_leaves_only_a_master_that_knows_it() -> None:
    one = joining()
    one.end(0.0)
    assert one.next_call(99.0) is None
    two = joining()
    call = due(two, 0.0)
    two.end(0.0)
    two.failed(call, "refused", 0.0)
    assert two.next_call(99.0) is None


def test_it_signs() -> None:
    at = Cluster(access=Access({"hub": "secret"}, brokers={"hub"}), admit=lambda broker: True)
    one = joining(sign=lambda: Signature.make("hub", "secret", WALL_MS, 5))
    assert step(one, at) == ["RegisterRequestB2M"]
    at.wait(8)
    assert step(one, at) == ["HeartRequestB2M"]
    assert one.is_online


@pytest.mark.parametrize("text", ["--5", "\u00b2", "1,\u00b2", "9" * 5000, ""])
def test_tokens_that_are_none_are_not_taken(text: str) -> None:
    one = joining()
    call = due(one, 0.0)
    answer = success(call.name, takeConfInfo=False, ssdStoreId=-2, stopRead=False, stopWrite=False)
    answer.brokerAuthorizedInfo.visitAuthorizedToken = text
    one.answered(call, answer, 0.0)
    assert (one.is_online, one.told.tokens) == (True, ())


def test_an_answer_that_breaks_the_taker_counts_as_a_failed_call(monkeypatch: pytest.MonkeyPatch) -> None:
    one = joining()
    front = Enrolment(one)
    call = due(one, 0.0)

    def breaks(*given: object) -> None:
        raise ValueError("nobody has foreseen this")

    monkeypatch.setattr(one, "answered", breaks)
    monkeypatch.setattr(front, "_connected", lambda master: SimpleNamespace(ask=lambda *given: None))
    front._make(call)
    assert not one.is_online
    assert one.next_at < float("inf")  # it tries again
