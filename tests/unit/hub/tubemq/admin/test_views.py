"""What an administrator sees of a master: pages, groups of all kinds, lags."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dataproxy.hub.tubemq.admin.parts import Position, read_positions
from dataproxy.hub.tubemq.admin.views import groups_page, members_of, offsets_of, partitions_of, topics_page
from dataproxy.wire.tubemq import messages
from tests.support.adminplay import Administered


def test_topics_and_partitions() -> None:
    of = Administered({"b": 2, "a": 1})
    of.stored = {"b": {0: (56, 280)}}
    page = topics_page(of.parts, "", 10)
    assert page["next"] is None
    assert [row["topic"] for row in page["topics"]] == ["a", "b"]
    assert page["topics"][1] == {
        "topic": "b",
        "partitions": 2,
        "brokers": [
            {
                "broker": 1, "host": "10.0.0.1", "port": 8123, "online": True, "stores": 1, "partitions": 2,
                "publish": True, "subscribe": True,
            }
        ],
    }  # fmt: skip
    assert partitions_of(of.parts, "b")["partitions"] == [
        {"partition": 0, "first": 56, "next": 280, "messages": 8},
        {"partition": 1, "first": 0, "next": 0, "messages": 0},
    ]
    of.layout.set_online(1, online=False)
    assert topics_page(of.parts, "a", 1)["topics"][0]["brokers"][0]["online"] is False
    assert len(partitions_of(of.parts, "b")["partitions"]) == 2


@pytest.mark.parametrize("name", ["nope", "", "a/b", "x" * 5000, "a\nb"])
def test_a_topic_that_is_not_there(name: str) -> None:
    with pytest.raises(LookupError, match="there is no topic") as caught:
        partitions_of(Administered().parts, name)
    assert "known: 't'" in str(caught.value) and len(str(caught.value)) < 300


def test_a_divided_group() -> None:
    of = Administered()
    of.stored = {"t": dict.fromkeys(range(4), (0, 280))}
    of.master.rules.set('[{"type": 1, "rule": [{"zeroCnt": 3, "freqInMs": 100}]}]', "g")
    of.register("c1", topicCondition=["t#b,a"])
    of.register("c2", topicCondition=["t#b,a"])
    of.report("c1", [0, 1])
    of.read("g", 0, 28, client="c1", more=56)
    of.read("g", 1, 280, client="c1")
    of.read("g", 2, 0)
    told = members_of(of.parts, of.positions, "g")
    assert json.loads(json.dumps(told)) == told
    members = {row["member"]: row for row in told.pop("members")}
    assert members["c1"] == {
        "member": "c1", "address": "10.0.2.1", "reads": 2, "lag": 9, "host": "h", "events": 0,
        "held": [{"broker": 1, "topic": "t", "partition": i} for i in (0, 1)],
    }  # fmt: skip
    assert (members["c2"]["reads"], members["c2"]["lag"], members["c2"]["held"]) == (0, 0, [])
    assert told.pop("rules")
    assert told == {
        "group": "g", "kind": "divided", "topics": ["t"], "partitions": 3, "owned": 2, "lag": 19,
        "filters": {"t": ["a", "b"]},
    }  # fmt: skip
    rows = offsets_of(of.parts, of.positions, "g")["offsets"]
    assert rows[0] == {
        "topic": "t", "partition": 0, "member": "c1", "offset": 28, "unconfirmed": 2, "first": 0, "next": 280, "lag": 9,
    }  # fmt: skip
    assert (rows[2]["member"], rows[2]["lag"]) == (None, 10)


def test_a_group_that_chooses() -> None:
    of = Administered()
    register = messages.RegisterRequestC2MV2(
        clientId="c1", hostName="h", groupName="v", topicList=["t"], nodeId=0, sourceCount=1,
        subRepInfo=messages.ClientSubRepInfo(
            brokerConfigId=-2, topicMetaInfoId=-2, reportSubInfo=True, partSubInfo=["t#1:0,1:3", "t#x:y"]
        ),
    )  # fmt: skip
    answer = of.call(register)
    assert answer.errCode == 200, answer.errMsg
    told = members_of(of.parts, of.positions, "v")
    assert (told["kind"], told["topics"]) == ("chosen", ["t"])
    assert told["members"][0]["held"] == [
        {"broker": 1, "topic": "t", "partition": 0},
        {"broker": 1, "topic": "t", "partition": 3},
    ]


def test_a_group_without_members_has_offsets() -> None:
    of = Administered()
    of.stored = {"t": {1: (140, 280)}}
    of.read("old", 1, 28)  # what it would read next is not stored any more
    of.registrations.take(b"old", b"t", 2, b"c", b"", 0)  # registered, and nowhere yet
    told = members_of(of.parts, of.positions, "old")
    assert (told["kind"], told["members"], told["lag"]) == ("idle", [], 5)
    rows = offsets_of(of.parts, of.positions, "old", "t")["offsets"]
    assert [(row["partition"], row["offset"], row["lag"]) for row in rows] == [(1, 28, 5), (2, None, None)]
    with pytest.raises(LookupError, match="no topic"):
        offsets_of(of.parts, of.positions, "old", "nope")


@pytest.mark.parametrize("group", ["nobody", "", "g/../h", "a\x00b"])
def test_a_group_that_is_not_there(group: str) -> None:
    of = Administered()
    of.register("c1")
    for view in (members_of, offsets_of):
        with pytest.raises(LookupError, match="known: 'g'"):
            view(of.parts, of.positions, group)


def test_ten_thousand_groups_come_in_pages() -> None:
    of = Administered()
    for i in range(10_000):
        of.read(f"g{i:05}", i % 4, 28)
    positions = of.positions
    names: list[str] = []
    start: str | None = ""
    pages = 0
    while start is not None:
        page = groups_page(of.parts, positions, start, 1000)
        names += [row["group"] for row in page["groups"]]
        start = page["next"]
        pages += 1
    assert names == [f"g{i:05}" for i in range(10_000)]
    assert pages == 10
    with pytest.raises(LookupError, match="and 9,990 others"):
        offsets_of(of.parts, positions, "x")


def test_positions_of_one_group() -> None:
    of = Administered()
    of.read("g", 1, 28)
    of.read("g", 0, 56)
    of.read("gg", 0, 0)
    assert [one.confirmed for one in read_positions(of.registrations, "g")["g"]] == [56, 28]
    assert read_positions(of.registrations, "g").keys() == {"g"}
    assert read_positions(of.registrations, "x") == {}, "nothing of other groups is copied"
    assert read_positions(of.registrations, "\ud800") == {}


class Counted(list[Position]):
    """Positions that count how often somebody goes through them."""

    passes = 0

    def __iter__(self) -> Iterator[Position]:
        self.passes += 1
        return super().__iter__()


def test_members_cost_no_pass_over_the_positions_each() -> None:
    of = Administered()
    for i in range(50):
        of.register(f"c{i}")
    of.read("g", 0, 28, client="c1")
    rows = Counted(of.positions["g"])
    told = members_of(of.parts, {"g": rows}, "g")
    assert sum(one["reads"] for one in told["members"]) == 1
    assert rows.passes < 10
