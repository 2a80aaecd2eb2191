"""Offsets that shall be set: what is meant, and what is refused before anything changes."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub.overview.places import AbsentError, Place, Step, plan, steps_told

TOPICS = {"t": {0: (10, 100), 1: (0, 50)}, "u": {0: (0, 7)}}
PLACES = [Place("t", 0, "c1", 40), Place("gone", 0, "", 3)]


def planned(group: str = "g", **given: Any) -> list[Step]:
    def at_time(topic: str, partition: int, ms: int) -> int:
        return ms

    return plan(group, ["g", "h"], PLACES, TOPICS.get, at_time, **given)


def test_without_a_topic_all_is_meant_in_which_the_group_has_an_offset() -> None:
    assert planned(to="first") == [Step("t", 0, "c1", 40, 10)]
    assert planned(to="next") == [Step("t", 0, "c1", 40, 100)]


def test_with_a_topic_all_its_partitions_are_meant_or_one() -> None:
    assert planned(topic="t", to="next") == [Step("t", 0, "c1", 40, 100), Step("t", 1, "", None, 50)]
    assert planned(topic="t", partition=1, to=12) == [Step("t", 1, "", None, 12)]


@pytest.mark.parametrize(("to", "after"), [("@20", 20), ("@3", 10), ("@4000", 100)])
def test_a_time_is_a_place_within_the_partition(to: str, after: int) -> None:
    assert planned(topic="t", partition=0, to=to)[0].after == after


@pytest.mark.parametrize("offset", [10, 100])
def test_the_ends_of_a_partition_are_offsets_of_it(offset: int) -> None:
    assert planned(topic="t", partition=0, to=offset)[0].after == offset


@pytest.mark.parametrize("offset", [9, 101, 1 << 61])
def test_an_offset_that_is_not_there_names_the_range(offset: int) -> None:
    with pytest.raises(ConfigError, match=rf"offset {offset} is not in partition 0 of topic 't'.*from 10 to 100"):
        planned(topic="t", partition=0, to=offset)


@pytest.mark.parametrize("to", [None, True, -1, 1.5, "last", "", "@", "@x", "12", "@" + "9" * 19, 1 << 62, ["first"]])
def test_what_is_no_place_is_refused(to: object) -> None:
    with pytest.raises(ConfigError, match=r"is no place in a partition.*first, next"):
        planned(to=to)


@pytest.mark.parametrize("group", ["", "a,b", "g h", "a/b", "a;b", "a:b", "x\n", "x" * 256, "b@c", "g#1"])
def test_a_text_with_separators_is_no_name_of_a_group(group: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a group"):
        planned(group, to="first")


def test_a_group_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(AbsentError, match=r"no group 'nobody'.*known: 'g', 'h'"):
        planned("nobody", to="first")


def test_a_topic_or_partition_that_is_not_there_is_told() -> None:
    with pytest.raises(AbsentError, match="no topic 'x'"):
        planned(topic="x", to="first")
    with pytest.raises(AbsentError, match="no partition 2; it has 0 to 1"):
        planned(topic="t", partition=2, to="first")


def test_a_partition_needs_a_topic_and_an_offset_needs_a_partition() -> None:
    with pytest.raises(ConfigError, match="partition=0 was given without a topic"):
        planned(partition=0, to="first")
    with pytest.raises(ConfigError, match="offsets belong to one partition"):
        planned(topic="t", to=5)


def test_a_group_without_offsets_needs_a_topic() -> None:
    with pytest.raises(AbsentError, match="'g' has no offsets; name a topic"):
        plan("g", ["g"], [], TOPICS.get, lambda *_: 0, to="first")


def test_a_plan_is_told_as_plain_values() -> None:
    assert steps_told("g", "tubemq", planned(topic="u", to="next"), executed=False) == {
        "group": "g", "protocol": "tubemq", "executed": False,
        "offsets": [{"topic": "u", "partition": 0, "member": None, "before": None, "after": 7}],
    }  # fmt: skip
