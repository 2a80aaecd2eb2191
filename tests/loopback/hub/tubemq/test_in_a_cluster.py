"""A hub in a cluster whose ZooKeeper is played in memory: as a leader, and as a standby."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from dataproxy import Producer
from dataproxy.errors import HubError
from dataproxy.hub import Hub, server, tasks
from dataproxy.hub.leader import seat
from dataproxy.hub.leader.seat import NotLeaderError, Ticket
from tests.loopback.hub.tubemq.test_admin import RULE, Raw, ask, change, joined, show
from tests.support.rawclient import Reader
from tests.support.waiting import SECONDS, eventually


class Played:
    """The membership of one hub, and the document; writes count at once."""

    def __init__(self) -> None:
        self.is_leader = True
        self.epoch = 1
        self.data: dict[str, Any] = {}
        self.hub = seat.Hub(1, "127.0.0.1", 1)
        self.other = seat.Hub(2, "10.0.0.2", 8715)
        self.hubs = {1: self.hub}
        self.waits: Callable[[], None] = lambda: None

    def leads(self) -> bool:
        return self.is_leader

    @property
    def leader(self) -> seat.Hub:
        return self.hub if self.is_leader else self.other

    def document(self) -> tuple[dict[str, Any], bool]:
        return self.data, True

    def begin(self, make: Callable[[dict[str, Any]], None]) -> Ticket:
        if not self.is_leader:
            raise NotLeaderError("no")
        make(self.data)
        return Ticket(b"", counted=True)

    def wait(self, ticket: Ticket) -> None:
        assert ticket.counted
        self.waits()

    def on_change(self, call: Callable[[], None]) -> None:
        """Nothing changes by itself."""

    def start(self) -> None:
        """It has begun."""

    def stop(self, limit: float = 5.0) -> None:
        """There is nothing to end."""


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played()
    monkeypatch.setattr(server, "make_cluster", lambda *given: found)
    return found


@pytest.fixture
def hub(played: Played, start_hub: Callable[..., Hub]) -> Hub:
    return start_hub(tubemq_port=0, partitions=3)


def test_a_topic_that_a_consumer_names_first_is_there_at_once(hub: Hub, raw: Raw) -> None:
    for i in range(5):
        joined(raw(hub), f"c{i}", f"g{i}", f"new{i}")


def test_a_declared_topic_is_there_at_once(hub: Hub) -> None:
    for i in range(5):
        query = {
            "method": "admin_add_new_topic_record", "brokerId": 1, "topicName": f"new{i}", "createUser": "me",
            "confModAuthToken": hub.token,
        }  # fmt: skip
        status, found = ask(hub, "GET", f"/webapi.htm?{urlencode(query)}")
        assert (status, found["data"][0]["errCode"]) == (200, 200), found
        assert f"new{i}" in [row["topic"] for row in show(hub, "topics")["topics"]]


def test_a_standby_shows_and_resets_what_it_has_itself(hub: Hub, raw: Raw, played: Played) -> None:
    played.is_leader = False
    with Producer(hub.target) as producer:
        producer.send("stream", b"x", group_id="demo").result(SECONDS)
    eventually(lambda: show(hub, "topics")["topics"] != [])
    assert [row["topic"] for row in show(hub, "topics")["topics"]] == ["demo"]
    (full,) = (row["partition"] for row in show(hub, "partitions", topic="demo")["partitions"] if row["messages"])
    assert Reader(raw(hub), "demo", "g", full).register().errCode == 200
    for more in ({}, {"topic": "demo", "partition": full}):
        done = change(hub, "offsets", {"group": "g", "to": "next", "execute": True, **more})
        assert [row["partition"] for row in done["offsets"]] == [full]
    assert show(hub, "offsets", group="g", topic="demo")["offsets"][0]["lag"] == 0


def test_changes_are_written_in_the_order_in_which_they_were_made(hub: Hub, played: Played) -> None:
    inside = threading.Event()
    go_on = threading.Event()

    def slow() -> None:
        played.waits = lambda: None
        inside.set()
        assert go_on.wait(SECONDS)

    played.waits = slow
    first = threading.Thread(target=change, args=(hub, "rules", {"rules": RULE}))
    first.start()
    try:
        assert inside.wait(SECONDS)
        change(hub, "rules", {"group": "g", "rules": RULE})
    finally:
        go_on.set()
        first.join(SECONDS)
    written = played.data["metadata"]["rules"]
    assert written["cluster"] and written["groups"].keys() == {"g"}


def test_what_nobody_waits_for_any_more_is_not_done_later(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    of = hub._tubemq
    assert of is not None
    inside, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def holds() -> None:
        inside.set()
        assert go_on.wait(SECONDS)

    holder = threading.Thread(target=of.run, args=(holds,))
    holder.start()
    try:
        assert inside.wait(SECONDS)
        monkeypatch.setattr(tasks, "_LONG_S", 0.01)
        with pytest.raises(TimeoutError, match="nothing was done"):
            of.run(lambda: done.append("late"))
    finally:
        go_on.set()
        holder.join(SECONDS)
    monkeypatch.undo()
    of.run(lambda: done.append("next"))
    assert done == ["next"]


def test_topics_are_found_while_the_cluster_cannot_be_followed(
    hub: Hub, raw: Raw, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = hub._tubemq
    assert of is not None and of._leading is not None

    def fails(*given: object) -> None:
        raise HubError("the document is none")

    monkeypatch.setattr(of._leading, "tick", fails)
    looked = threading.Event()
    look = of.topics.look

    def seen(now: float) -> None:
        look(now)
        looked.set()

    monkeypatch.setattr(of.topics, "look", seen)
    assert looked.wait(SECONDS)


def test_a_call_of_tubemqs_at_a_standby_is_answered_in_its_form(hub: Hub, played: Played) -> None:
    query = {
        "method": "admin_add_group_csmctrl_info", "topicName": "new", "groupName": "g", "createUser": "me",
        "confModAuthToken": hub.token,
    }  # fmt: skip
    of = hub._tubemq
    assert of is not None
    of.run(lambda: of.topics.name(["new"]))
    played.is_leader = False
    status, found = ask(hub, "GET", f"/webapi.htm?{urlencode(query)}")
    assert (status, found["result"], found["errCode"]) == (200, False, 400)
    assert found["errMsg"] == "hub 2 at 10.0.0.2:8715 leads the cluster, not this one"


def test_a_member_that_is_not_there_is_named_on_one_line(hub: Hub, raw: Raw) -> None:
    joined(raw(hub), "c")
    body = {"group": "g", "topic": "demo", "partition": 0, "member": "a\r\nb"}
    status, found = ask(hub, "POST", "/hub/tubemq/moves", body, token=hub.token)
    assert (status, found["errMsg"]) == (404, r"the group 'g' has no member 'a\r\nb'")


def test_a_mistake_of_our_own_is_not_the_clients(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    of = hub._tubemq
    assert of is not None

    def fails() -> None:
        raise KeyError("x")

    monkeypatch.setattr(of.parts.access, "rights", fails)
    connection = http.client.HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    connection.request("GET", "/hub/tubemq/rights")
    assert connection.getresponse().status == 500
    connection.close()
