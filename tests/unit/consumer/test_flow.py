"""Waits between packs, by flow rules: the golden vectors, and each step of the decision."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dataproxy.wire.tubemq.flow import EmptyRule, FlowRules, Pace, VolumeRule, read_flow_rules
from tests.native.probe_consumer import Flow
from tests.support.reference.tubevectors import VECTORS

VECTOR = VECTORS["flow_control"]
RULES = read_flow_rules(VECTOR["text"])
NONE = FlowRules()
MIB = 1 << 20


def wall(time: str) -> int:
    """Return a wall clock's ms at a time of the day in GMT+8."""
    hour, minute = map(int, time.split(":"))
    there = datetime(2026, 11, 25, tzinfo=UTC) + timedelta(hours=hour - 8, minutes=minute)
    return int(there.timestamp() * 1000)


NOON = wall("12:00")


@pytest.mark.parametrize("vector", VECTOR["freq_limit"], ids=lambda v: str(v["zero_count"]))
@pytest.mark.parametrize("rules", [(RULES, NONE), (NONE, RULES)], ids=["group", "cluster"])
def test_empty_answers(vector: dict[str, Any], rules: tuple[FlowRules, FlowRules]) -> None:
    flow = Flow(*rules)
    waits = [flow.answer(1, NOON, code=404, size=0, wait=vector["default_ms"]) for _ in range(vector["zero_count"])]
    assert waits[-1] == vector["result_ms"]


@pytest.mark.parametrize("vector", VECTOR["data_limit"], ids=lambda v: f"{v['time']} {v['data_dlt']}")
def test_volumes_by_the_time_of_the_day(vector: dict[str, Any]) -> None:
    rules = RULES._replace(pace=None)
    expected = vector["result"] or {"bytes_per_minute": 1 << 60, "freq_ms": 0}
    minute, wait = expected["bytes_per_minute"], expected["freq_ms"]
    for group, cluster in ((rules, NONE), (NONE, rules)):
        for size, slow in ((minute // 12 - 1, False), (minute // 12, True)):
            flow = Flow(group, cluster)
            assert flow.answer(1, wall(vector["time"]), size=0, backlog=vector["data_dlt"]) == 0
            assert flow.answer(2, wall(vector["time"]), size=size, wait=7) == (wait if slow and wait else 7)


def test_a_slice_and_a_minute_have_their_limits() -> None:
    flow = Flow(FlowRules((VolumeRule(0, 1439, 1, 12 * MIB, 1000),)), NONE)
    assert flow.answer(0.1, NOON, size=0, backlog=2) == 0
    assert flow.answer(1, NOON, size=MIB - 1) == 0
    assert flow.answer(2, NOON, size=1) == 1000
    assert flow.answer(5.2, NOON, size=MIB) == 0  # begins the next slice, which it is no part of
    assert flow.answer(5.3, NOON, size=MIB) == 1000
    for second in range(6, 60, 5):
        flow.answer(second, NOON, size=MIB)
    assert flow.answer(59.9, NOON, size=MIB) == 1000
    assert flow.answer(60.2, NOON, size=12 * MIB) == 0  # the next minute, which begins with nothing
    assert flow.answer(60.3, NOON, size=12 * MIB, wait=5000) == 5000


def test_a_clock_may_begin_with_zero() -> None:
    flow = Flow(FlowRules((), (), Pace(70, 70, 70)), NONE)
    assert flow.answer(0, NOON) == 70


def test_a_backlog_counts_from_the_next_minute() -> None:
    """A stage takes its limit when it begins: with nothing known it is unlimited."""
    flow = Flow(FlowRules((VolumeRule(0, 1439, 21, 12, 1000),)), NONE)
    assert flow.answer(1, NOON, size=100, backlog=-1) == 0
    assert flow.answer(2, NOON, size=100, backlog=1000) == 0
    assert flow.answer(62, NOON, size=0) == 0
    assert flow.answer(63, NOON, size=100) == 1000


def test_rules_of_the_group_go_first() -> None:
    group = FlowRules((VolumeRule(0, 1439, 100, 12, 300),), (EmptyRule(1, 50),), Pace(1, 2, 3))
    cluster = FlowRules((VolumeRule(0, 1439, 21, 12, 600),), (EmptyRule(1, 70),), Pace(4, 5, 6))
    for backlog, wait in ((101, 300), (50, 600)):
        flow = Flow(group, cluster)
        flow.answer(1, NOON, size=0, backlog=backlog)
        assert flow.answer(2, NOON, size=100) == wait
    assert Flow(group, cluster).answer(1, NOON, code=404, size=0) == 50
    assert Flow(NONE, cluster).answer(1, NOON, code=404, size=0) == 70
    later = group._replace(empty=(EmptyRule(2, 50),))
    assert Flow(later, cluster).answer(1, NOON, code=404, size=0, wait=9) == 9  # the cluster's are not looked at
    assert Flow(group, cluster).answer(1, NOON) == 1
    assert Flow(NONE, cluster).answer(1, NOON) == 4


def test_the_pace() -> None:
    low = VECTOR["low_fetch"]
    assert Flow(RULES, NONE).answer(1, NOON, wait=9) == low["norm_ms"]
    assert Flow(RULES, NONE).answer(1, NOON, filtered=True) == low["filter_ms"]
    assert Flow(RULES, NONE).answer(1, NOON, filtered=True, slow=True) == low["min_data_filter_ms"]
    assert Flow(NONE, NONE).answer(1, NOON, filtered=True, wait=9) == 9


def test_other_answers() -> None:
    flow = Flow(FlowRules((), (EmptyRule(1, 50),), Pace(1, 2, 3)), NONE)
    assert flow.answer(1, NOON, code=452, size=0, wait=5000) == 5000
    assert flow.answer(1, NOON, code=503, size=0, wait=300) == 300
    assert flow.answer(1, NOON, code=404, size=0, wait=400) == 50
    assert flow.answer(1, NOON, code=200, size=0, wait=0) == 1  # nothing passed the filter: no empty answer
    assert flow.answer(1, NOON, escape=True, wait=9) == 0


def test_texts_are_read() -> None:
    assert RULES.volume[0] == VolumeRule(8 * 60, 17 * 60 + 30, 1024, 20 * MIB, 1000)
    assert RULES.empty == (EmptyRule(8, 1000), EmptyRule(3, 300))
    assert RULES.pace == Pace(0, 100, 400)
    assert read_flow_rules(" ") == read_flow_rules("[]") == NONE
    assert read_flow_rules('[{"type": 2}, {"type": 2, "rule": 1}]') == NONE
    last = '[{"type":0,"rule":[{"start":"0:0","end":"24:00","dltInM":21,"limitInM":0,"freqInMs":200}]}]'
    assert read_flow_rules(last).volume == (VolumeRule(0, 1440, 21, 0, 200),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "") for text in VECTOR["invalid"]),
        ("[", "are no JSON"),
        ("[" * 100_000, "are no JSON"),
        ("[1]", "a flow rule has type=None"),
        ('[{"type":true,"rule":[]}]', "a flow rule has type=True"),
        ('[{"type":1}]', "have no list 'rule'"),
        (f'[{{"type":1,"rule":[{",".join(["1"] * 65)}]}}]', "are 65, at most 64 are read"),
        ('[{"type":3,"rule":[]}]', "have 0 entries, expected one"),
        ('[{"type":3,"rule":[{"normFreqInMs":0,"filterFreqInMs":2,"minDataFilterFreqInMs":1}]}]', "less than"),
        ('[{"type":0,"rule":[{"start":"8","end":"9:00"}]}]', "expected a time such as '08:00'"),
        ('[{"type":0,"rule":[{"start":"25:00","end":"9:00"}]}]', "from '00:00' to '24:59'"),
        ('[{"type":1,"rule":[{"zeroCnt":1e999,"freqInMs":300}]}]', "zeroCnt=inf"),
        (f'[{{"type":1,"rule":[{{"zeroCnt":"{"x" * 1000}","freqInMs":300}}]}}]', "zeroCnt='xxx"),
    ],
)
def test_texts_that_break_a_rule(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="flow rule") as caught:
        read_flow_rules(text)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400
