"""The master of a cluster: standbys, takeovers, and what the document has."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from dataproxy.errors import HubError
from dataproxy.hub.clients import Clients
from dataproxy.hub.leader.seat import Hub, NotLeaderError, Ticket
from dataproxy.hub.tubemq.brokers.enrolment import Enrolment
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import ServerError
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.cluster.metadata import take, told
from dataproxy.hub.tubemq.cluster.rules import Rules
from dataproxy.hub.tubemq.leading import Leading, admitted, brokers_in
from dataproxy.hub.tubemq.master import Master
from dataproxy.masters.target import Address
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.deployed import TopicText
from dataproxy.wire.tubemq.texts import Broker
from tests.support.mastercalls import WALL_MS, texts

ONE, TWO, THREE = (Broker(i, f"10.0.0.{i}", 8715) for i in (1, 2, 3))


class Shared:
    """A cluster in memory: who leads, and the document."""

    def __init__(self) -> None:
        self.leading: Hub | None = None
        self.epoch = 0
        self.data: dict[str, Any] = {}
        self.is_full = False
        self.hubs = {one.id: Hub(*one) for one in (ONE, TWO, THREE)}

    def lead(self, broker: Broker) -> None:
        """Let a hub lead."""
        self.leading = Hub(*broker)
        self.epoch += 1


class Member:
    """One hub of it, and its `Membership`."""

    def __init__(self, shared: Shared, me: Broker, topics: dict[str, int]) -> None:
        self.shared, self.me, self.now = shared, me, 1000.0
        self.own, self.all = Layout(7), Layout(7)
        self.own.put(me, {name: TopicAt(n) for name, n in topics.items()})
        self.access = Access()
        self.master = Master(
            self.all, Clients(), random.Random(1), self.now, version=7,
            limits=MasterLimits(first_balance_s=15.0, soon_s=0.5, balance_s=1.0, broker_s=10.0),
            access=self.access, admit=lambda broker: admitted(self, me.id, broker),
        )  # fmt: skip
        self.masters: list[Any] = []
        self.told: list[Any] = []
        self.front = Leading(
            self, self.master, cast("Enrolment", self), me, self.own, self.all, self.access
        )  # fmt: skip

    # what `Leading` asks of a cluster

    def leads(self) -> bool:
        return self.shared.leading == Hub(*self.me)

    @property
    def epoch(self) -> int:
        return self.shared.epoch

    @property
    def leader(self) -> Hub | None:
        return self.shared.leading

    @property
    def hubs(self) -> dict[int, Hub]:
        return self.shared.hubs

    def document(self) -> tuple[dict[str, Any], bool]:
        return self.shared.data, True

    def begin(self, change: Callable[[dict[str, Any]], None]) -> Ticket:
        if not self.leads():
            raise NotLeaderError("no")
        if self.shared.is_full:
            raise HubError("the document is too large")
        change(self.shared.data)
        return Ticket(b"", counted=True)

    # what it asks of an enrolment

    def set_masters(self, masters: Sequence[Address]) -> None:
        self.masters.append(tuple(masters))

    def set_topics(self, topics: Any) -> None:
        self.told.append(dict(topics))

    # calls

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass."""
        self.now += seconds
        self.front.tick(self.now, WALL_MS + 5)
        self.master.tick(self.now)

    def administer(self, function: Callable[[], Any]) -> Any:
        """Let an administrator change something."""
        return self.front.administer(function, self.now, WALL_MS + 5)

    def ask(self, request: Any) -> Any:
        """Make a call."""
        return self.front.answer(request, "10.0.9.9", self.now, WALL_MS + 5)

    def come(self, broker: Broker, **partitions: int) -> Any:
        """Register a broker."""
        texts = [str(TopicText(name, n)) for name, n in partitions.items()]
        return self.ask(
            messages.RegisterRequestB2M(
                clientId=f"{broker}:1", brokerOnline=True, enableTls=False, readStatusRpt=0, writeStatusRpt=0,
                curBrokerConfId=1, confCheckSumId=0, brokerDefaultConfInfo=" ", brokerTopicSetConfInfo=texts,
            )
        )  # fmt: skip


def test_a_standby_sends_clients_on_in_tubemqs_words() -> None:
    shared = Shared()
    one = Member(shared, ONE, {"t": 1})
    shared.lead(TWO)
    heartbeat = messages.HeartRequestC2M(clientId="c", groupName="g", reportSubscribeInfo=False)
    with pytest.raises(
        ServerError, match=r"10\.0\.0\.1:8715 is not master now\. the connecting client id is c"
    ) as caught:
        one.ask(heartbeat)
    assert caught.value.name == "StandbyException"
    with pytest.raises(ServerError, match="client id is 3"):
        one.ask(messages.CloseRequestB2M(brokerId="3"))
    one.tick()
    assert (one.masters, one.told) == ([(Address("10.0.0.2", 8715),)], [{"t": TopicAt(1)}])


def test_a_leader_has_its_own_topics_and_those_of_the_hubs_that_come() -> None:
    shared = Shared()
    one = Member(shared, ONE, {"t": 1})
    shared.lead(ONE)
    one.tick()
    assert one.come(TWO, t=2).errCode == 200
    assert one.come(TWO._replace(port=1), t=2).errCode == 400
    assert one.come(ONE, t=2).errCode == 400
    assert one.come(Broker(9, "10.0.0.9", 1), t=2).errCode == 400
    assert [part.key for part in one.all.partitions({"t"})] == ["1:t:0", "2:t:0", "2:t:1"]
    assert brokers_in(shared.data) == [(ONE, {"t": TopicAt(1)}), (TWO, {"t": TopicAt(2)})]
    one.own.put(ONE, {"t": TopicAt(1), "u": TopicAt(1)})
    one.tick(1)
    assert brokers_in(shared.data)[0] == (ONE, {"t": TopicAt(1), "u": TopicAt(1)})
    one.tick(11)
    assert [part.key for part in one.all.partitions({"t"})] == ["1:t:0"]
    one.tick(1)
    assert brokers_in(shared.data) == [(ONE, {"t": TopicAt(1), "u": TopicAt(1)})]


def member(at: Member, client: str, held: Any = (), broker: Broker = TWO) -> Any:
    """Register a consumer with what it holds."""
    return at.ask(
        messages.RegisterRequestC2M(
            clientId=client, groupName="g", hostName="h", topicList=["t"], requireBound=False,
            subscribeInfo=texts(client, "g", "t", held, broker), notAllocated=False,
        )
    )  # fmt: skip


def test_a_new_leader_takes_nothing_from_who_comes_back() -> None:
    shared = Shared()
    one, three = Member(shared, ONE, {}), Member(shared, THREE, {})
    shared.lead(ONE)
    one.tick()
    three.tick()
    one.come(TWO, t=4)
    shared.lead(THREE)
    version = three.all.version
    three.tick()
    assert three.all.version > max(version, WALL_MS)
    assert len(three.all.partitions({"t"})) == 4  # before any hub has registered
    assert member(three, "a", [0, 1]).errCode == 200
    three.tick(5)
    heartbeat = messages.HeartRequestC2M(clientId="a", groupName="g", reportSubscribeInfo=False)
    assert not three.ask(heartbeat).HasField("event")
    assert three.come(TWO, t=4).errCode == 200
    member(three, "b", [2, 3])
    for _ in range(4):
        three.tick(4)
        for client in "ab":
            heartbeat = messages.HeartRequestC2M(clientId=client, groupName="g", reportSubscribeInfo=False)
            assert not three.ask(heartbeat).HasField("event")
        three.come(TWO, t=4)
    assert three.masters[-1] == ()


def test_who_leads_again_has_forgotten_its_members() -> None:
    shared = Shared()
    one = Member(shared, ONE, {"t": 1})
    shared.lead(ONE)
    assert member(one, "a").errCode == 200
    shared.lead(TWO)
    one.tick()
    shared.lead(ONE)
    heartbeat = messages.HeartRequestC2M(clientId="a", groupName="g", reportSubscribeInfo=False)
    assert one.ask(heartbeat).errCode == 411
    assert one.master.used_bytes == 0


def test_rules_have_new_numbers_at_a_new_leader() -> None:
    shared = Shared()
    one = Member(shared, ONE, {"t": 1})
    one.master.rules.set(RULES, "g")
    shared.data["metadata"] = told(one.master.rules, one.access)
    shared.lead(ONE)
    member(one, "a")
    fields = {"groupName": "g", "clientId": "a", "reportSubscribeInfo": False}
    answer = one.ask(messages.HeartRequestC2M(groupFlowCheckId=8, **fields))
    assert (answer.groupFlowControlInfo, answer.groupFlowCheckId > WALL_MS) == (RULES, True)


RULES = '[{"type":0,"rule":[{"start":"00:00","end":"24:00","dltInM":1024,"limitInM":10,"freqInMs":1000}]}]'


def test_rules_and_rights_are_the_clusters() -> None:
    shared = Shared()
    one, two = Member(shared, ONE, {"t": 1}), Member(shared, TWO, {"t": 1})
    shared.lead(ONE)
    one.tick()

    def change(at: Member) -> str:
        at.master.rules.set(RULES, "g")
        at.master.rules.set(RULES)
        at.access.control("t", on=True)
        at.access.allow("g", "t", frozenset("ab"))
        at.access.allow("h", "u")
        return "done"

    with pytest.raises(HubError, match=r"hub 1 at 10\.0\.0\.1:8715 leads the cluster, not this one"):
        two.administer(lambda: change(two))
    assert told(two.master.rules, two.access) == told(Rules(1), Access())
    result, ticket = one.administer(lambda: change(one))
    assert result == "done" and ticket is not None
    metadata = json.loads(json.dumps(shared.data["metadata"]))
    assert metadata == told(one.master.rules, one.access)
    assert one.administer(lambda: change(one)) == ("done", None)  # nothing is new
    two.tick()
    assert told(two.master.rules, two.access) == metadata
    one.administer(lambda: (one.master.rules.set(""), one.access.deny("h", "u")))  # type: ignore[func-returns-value]
    other = shared.data["metadata"]
    assert other == {**metadata, "rules": {**metadata["rules"], "cluster": ""}, "rights": other["rights"]}
    shared.lead(TWO)
    shared.data["metadata"] = metadata  # it was not written
    one.front.restore()
    assert told(one.master.rules, one.access) == metadata
    shared.data["metadata"] = other
    two.tick()
    assert member(two, "a").errCode == 455  # from its first call on
    assert told(two.master.rules, two.access) == other


def test_the_first_change_of_all_is_undone_where_it_is_not_written() -> None:
    shared = Shared()
    one = Member(shared, ONE, {"t": 1})
    shared.lead(ONE)
    one.tick()
    shared.is_full = True
    with pytest.raises(HubError, match="too large"):
        one.administer(lambda: one.master.rules.set(RULES))
    assert told(one.master.rules, one.access) == told(Rules(1), Access())
    one.master.rules.set(RULES)
    one.access.control("t", on=True)
    shared.lead(TWO)
    one.front.restore()  # no hub has ever written metadata
    assert told(one.master.rules, one.access) == told(Rules(1), Access())


def test_a_change_in_the_first_moment_keeps_what_the_document_has() -> None:
    shared = Shared()
    one = Member(shared, ONE, {"t": 1})
    rules = Rules(1)
    rules.set(RULES, "g")
    shared.data["metadata"] = told(rules, Access())
    shared.lead(ONE)
    one.administer(lambda: one.access.control("t", on=True))
    assert shared.data["metadata"]["rules"]["groups"] == {"g": RULES}


def test_who_could_not_read_the_document_begins_anew_with_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared()
    one = Member(shared, ONE, {"t": 1})
    shared.data["brokers"] = {"2": {"host": "10.0.0.2", "port": 8715, "topics": {"t": [2]}}}
    shared.lead(ONE)

    def fails() -> Any:
        raise HubError("the document is none")

    with monkeypatch.context() as patched:
        patched.setattr(one, "document", fails)
        with pytest.raises(HubError, match="is none"):
            one.tick()
    one.tick()
    assert [part.key for part in one.all.partitions({"t"})] == ["1:t:0", "2:t:0", "2:t:1"]


def test_metadata_that_are_none_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rules, access = Rules(1), Access()
    rules.set(RULES, "g")
    no_items = {"t": {"controlled": True, "groups": {"g": 5}}}
    for rights in ({"t": 1}, no_items):
        take({"metadata": {"rules": {"cluster": "", "groups": {}}, "rights": rights}}, rules, access)
    for bad in ({"rules": 1}, {"rights": {}}):
        take({"metadata": bad}, rules, access)
    assert rules.of_groups() == {"g": RULES}
    assert caplog.text.count("are none") == 4
    take({"metadata": {"rules": {"cluster": "x", "groups": {}}, "rights": {}}}, rules, access)
    assert told(rules, access) == told(Rules(1), Access())


def test_a_document_that_is_none_leaves_brokers_out(caplog: pytest.LogCaptureFixture) -> None:
    good = {"host": "h", "port": 1, "topics": {"t": [2]}}
    bad = {"x": good, "4": {"host": "h"}, "5": None, "6": {**good, "topics": {"t": 1}}}
    assert brokers_in({"brokers": {**bad, "7": good}}) == [(Broker(7, "h", 1), {"t": TopicAt(2)})]
    assert caplog.text.count("is none") == 4
