"""Resets, flow rules, rights and moves: checked whole before anything changes."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.tubemq.admin import changes, tubecalls
from dataproxy.hub.tubemq.admin.resets import Step, apply_steps, plan_reset, steps_told
from tests.support.adminplay import Administered

VOLUME = {"start": "10:00", "end": "11:00", "dltInM": 30, "limitInM": 1, "freqInMs": 300}
RULE = [{"type": 1, "rule": [{"zeroCnt": 3, "freqInMs": 100}]}]


@pytest.fixture
def of() -> Administered:
    found = Administered({"t": 3, "u": 1})
    found.stored = {"t": {0: (28, 280), 1: (0, 56), 2: (0, 0)}}
    found.read("g", 0, 84, client="c1", more=56)
    found.read("g", 1, 28)
    found.read("g", 0, 0, topic="u")
    return found


# --- resets


def test_a_plan_changes_nothing(of: Administered) -> None:
    before = of.positions
    assert plan_reset(of.parts, of.positions, "g", topic="t", to="first") == [
        Step("t", 0, "c1", 84, 28), Step("t", 1, "", 28, 0), Step("t", 2, "", -1, 0),
    ]  # fmt: skip
    steps = plan_reset(of.parts, of.positions, "g", to="next")
    assert steps == [Step("t", 0, "c1", 84, 280), Step("t", 1, "", 28, 56), Step("u", 0, "", 0, 0)]
    assert of.positions == before
    told = steps_told("g", steps, executed=False)
    assert told["offsets"][1] == {"topic": "t", "partition": 1, "member": None, "before": 28, "after": 56}
    assert told["executed"] is False


def test_a_reset_moves_a_group_that_is_reading(of: Administered) -> None:
    apply_steps(of.parts, "g", plan_reset(of.parts, of.positions, "g", topic="t", partition=0, to=140))
    row = of.positions["g"][0]
    assert (row.owner, row.confirmed, row.pending) == ("c1", 140, 0)
    assert of.registrations.commit(b"g", b"t", 0, b"c1", consumed=True, now_us=0) == (200, 140)
    assert of.positions["g"][1].confirmed == 28


BAD_RESETS: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (LookupError, "no group 'nobody'", {"group": "nobody", "to": "first"}),
    (LookupError, "no topic 'nope'", {"topic": "nope", "to": "first"}),
    (LookupError, "no partition 3; it has 0 to 2", {"topic": "t", "partition": 3, "to": "first"}),
    (LookupError, "no partition -1", {"topic": "t", "partition": -1, "to": "first"}),
    (ConfigError, "without a topic", {"partition": 1, "to": "first"}),
    (ConfigError, "belong to one partition", {"topic": "t", "to": 28}),
    (ConfigError, "multiple of 28 from 28 to 280", {"topic": "t", "partition": 0, "to": 0}),
    (ConfigError, "multiple of 28 from 28 to 280", {"topic": "t", "partition": 0, "to": 308}),
    (ConfigError, "multiple of 28", {"topic": "t", "partition": 0, "to": 29}),
    (ConfigError, "multiple of 28", {"topic": "t", "partition": 0, "to": 10**400}),
    (ConfigError, "no place", {"to": "latest"}),
    (ConfigError, "no place", {"to": None}),
    (ConfigError, "no place", {"to": True}),
    (ConfigError, "no place", {"to": 28.0}),
    (ConfigError, "no place", {"to": ["first"]}),
]


@pytest.mark.parametrize(("kind", "text", "asked"), BAD_RESETS)
def test_a_reset_that_is_refused(of: Administered, kind: type[Exception], text: str, asked: dict[str, Any]) -> None:
    before = of.positions
    with pytest.raises(kind, match=text):
        plan_reset(of.parts, of.positions, **{"group": "g", **asked})
    assert of.positions == before


def test_a_group_without_offsets_needs_a_topic(of: Administered) -> None:
    of.register("c1", "new", ("t",))
    with pytest.raises(LookupError, match="name a topic"):
        plan_reset(of.parts, of.positions, "new", to="next")
    apply_steps(of.parts, "new", plan_reset(of.parts, of.positions, "new", topic="t", to="next"))
    assert [one.confirmed for one in of.positions["new"]] == [280, 56, 0]


def test_there_is_no_room_for_positions() -> None:
    of = Administered({"t": 10}, most_bytes=700)
    of.read("g", 0, 0)
    steps = plan_reset(of.parts, of.positions, "g", topic="t", to="first")
    with pytest.raises(HubError, match=r"no room for further positions: [0-9] of 10"):
        apply_steps(of.parts, "g", steps)


# --- flow rules


def test_rules_are_set_and_deleted(of: Administered) -> None:
    assert changes.rules_told(of.parts) == {"cluster": None, "groups": {}}
    changes.set_rules(of.parts, None, RULE)
    changes.set_rules(
        of.parts, "g-1_x", '[{"type":3,"rule":[{"normFreqInMs":0,"filterFreqInMs":1,"minDataFilterFreqInMs":1}]}]'
    )
    told = changes.rules_told(of.parts)
    assert told["cluster"] == RULE
    assert told["groups"]["g-1_x"][0]["type"] == 3
    answer = of.register("c1", "g-1_x", ("t",), defFlowCheckId=-2, groupFlowCheckId=-2)
    assert "zeroCnt" in answer.defFlowControlInfo and "normFreqInMs" in answer.groupFlowControlInfo
    changes.delete_rules(of.parts, "g-1_x")
    changes.delete_rules(of.parts, None)
    assert changes.rules_told(of.parts) == {"cluster": None, "groups": {}}
    for group in ("g-1_x", None):
        with pytest.raises(LookupError, match="no flow rules"):
            changes.delete_rules(of.parts, group)


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ("", "no flow rules in the request"),
        (None, "no flow rules in the request"),
        ("{", "no JSON"),
        ({"type": 1}, "expected a list"),
        ([{"type": 9, "rule": []}], "type=9"),
        ([{"type": 1, "rule": [{"zeroCnt": 0, "freqInMs": 1}]}], "zeroCnt=0"),
        ([{"type": 0, "rule": [{**VOLUME, "start": "12:00"}]}], "ends"),
        ([{"type": 0, "rule": [{**VOLUME, "start": "1"}]}], "start='1'"),
        ("[" * 100_000, "100,000 characters"),
    ],
)  # fmt: skip
def test_rules_that_tubemq_refuses(of: Administered, rules: object, text: str) -> None:
    changes.set_rules(of.parts, "g", RULE)
    with pytest.raises(ConfigError, match=text):
        changes.set_rules(of.parts, "g", rules)
    assert changes.rules_told(of.parts)["groups"] == {"g": RULE}


@pytest.mark.parametrize("group", ["", "1g", "a b", "a#b", "a/b", "ü", "x" * 1025, 5])
def test_rules_for_no_group(of: Administered, group: Any) -> None:
    with pytest.raises(ConfigError):
        changes.set_rules(of.parts, group, RULE)


@pytest.mark.parametrize("group", [None, "g"])
def test_rules_that_no_client_can_be_told(of: Administered, group: str | None) -> None:
    text = '[{"type":1,"rule":[{"zeroCnt":3,"freqInMs":100}],"note":"\ud800"}]'
    with pytest.raises(ConfigError, match="surrogate"):
        changes.set_rules(of.parts, group, text)
    assert not of.parts.rules.of_cluster and not of.parts.rules.of_groups()


# --- rights


def test_a_call_for_many_groups_looks_at_one_topic(of: Administered, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise AssertionError("all rights were copied")

    monkeypatch.setattr(of.parts.access, "rights", fails)
    query = {
        "method": "admin_add_group_csmctrl_info", "topicName": "t", "groupName": "a,b,a", "createUser": "me",
        "confModAuthToken": "x",
    }  # fmt: skip
    rows = tubecalls.answer(of.parts, query, lambda text: True)["data"]
    assert [(row["groupName"], row["errCode"]) for row in rows] == [("a", 200), ("b", 200)]
    rows = tubecalls.answer(of.parts, query, lambda text: True)["data"]
    assert [row["errCode"] for row in rows] == [402, 402]


def test_rights_of_groups(of: Administered) -> None:
    of.parts.access.allow("early", "t")  # before the topic is controlled
    assert of.register("c", "other", ("t",)).errCode == 200
    changes.set_control(of.parts, "t", on=True)
    assert of.register("c2", "other", ("t",)).errCode == 450
    assert of.register("c3", "early", ("t",)).errCode == 200
    changes.set_right(of.parts, "other", "t", allow=True, items=["a", "b"])
    assert of.register("c4", "other", ("t",)).errCode == 455
    assert changes.rights_told(of.parts)["topics"] == [
        {
            "topic": "t", "controlled": True,
            "groups": [{"group": "early", "items": None}, {"group": "other", "items": ["a", "b"]}],
        }
    ]  # fmt: skip
    changes.set_right(of.parts, "other", "t", allow=False)
    with pytest.raises(LookupError, match="no right of its own"):
        changes.set_right(of.parts, "other", "t", allow=False)
    changes.set_control(of.parts, "t", on=False)
    assert of.register("c5", "third", ("t",)).errCode == 200
    changes.set_control(of.parts, "t", on=True)
    assert of.register("c6", "third", ("t",)).errCode == 450
    assert of.register("c7", "early", ("t",)).errCode == 200  # it was not forgotten


@pytest.mark.parametrize("topic", ["", "a#b", "a,b", "a@b", "a=b", "a b", "x" * 256, None])
def test_rights_to_no_topic(of: Administered, topic: Any) -> None:
    with pytest.raises(ConfigError):
        changes.set_control(of.parts, topic, on=True)
    with pytest.raises(ConfigError):
        changes.set_right(of.parts, "g", topic, allow=True)
    assert changes.rights_told(of.parts) == {"topics": []}


@pytest.mark.parametrize(
    ("items", "text"), [([], "no filter item"), (["a b"], "filter item"), (["x"] * 3 + ["-"], "filter item")]
)
def test_items_that_are_none(of: Administered, items: list[str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        changes.set_right(of.parts, "g", "t", allow=True, items=items)
    assert changes.rights_told(of.parts) == {"topics": []}


# --- moves


def test_a_partition_goes_to_a_member(of: Administered) -> None:
    of.register("c1", "m", ("t",))
    of.register("c2", "m", ("t",))
    of.report("c1", [0, 1], group="m")
    of.report("c2", [2], group="m")
    changes.move(of.parts, "m", "t", 0, "c2", of.now)
    of.wait(1.0)
    answer = of.beat("c1", "m")
    assert [text.rsplit(":", 1)[1] for text in answer.event.subscribeInfo] == ["0"]


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (LookupError, ("nobody", "t", 0, "c1")),
        (LookupError, ("m", "t", 0, "c9")),
        (ConfigError, ("m", "t", 9, "c1")),
        (ConfigError, ("m", "u", 0, "c1")),
        (ConfigError, ("m", "a/b", 0, "c1")),
    ],
)
def test_a_move_that_is_refused(of: Administered, kind: type[Exception], asked: tuple[str, str, int, str]) -> None:
    of.register("c1", "m", ("t",))
    with pytest.raises(kind):
        changes.move(of.parts, *asked, of.now)
    with pytest.raises(ConfigError):
        changes.move(of.parts, "m", "t", 0, "c1", of.now, broker=77)
