"""What an operator sets at TubeMQ's own master while consumers run: flow rules, and which groups may read."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import pytest

from dataproxy import Consumer, GroupRefusedError
from tests.interop.tubemq.conftest import Servers
from tests.interop.tubemq.long.load import Load

WHO = "confModAuthToken=abc&createUser=tests&modifyUser=tests"
SECONDS = 120
PACE_S = 1.0

pytestmark = pytest.mark.timeout(600)


def change(tubemq: Servers, method: str, **fields: str) -> None:
    """Make a call of the master's HTTP API that changes something."""
    query = "&".join([WHO, *(f"{name}={quote(text)}" for name, text in fields.items())])
    answer = json.loads(tubemq.run("tube-api", method, query))
    assert answer["result"], answer
    assert all(one["success"] for one in answer["data"]), answer


def gaps(consumer: Consumer, seconds: float) -> list[float]:
    """Read for a time; return the times between two packs of the same partition."""
    last: dict[str, float] = {}
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pack = consumer.poll(0.5)
        if pack is not None:
            now = time.monotonic()
            if pack.partition in last:
                found.append(now - last[pack.partition])
            last[pack.partition] = now
            consumer.confirm(pack)
    return found


def test_flow_rules_come_and_go(tubemq: Servers) -> None:
    group = f"paced_{time.time_ns()}"
    rule = {"normFreqInMs": int(PACE_S * 1000), "filterFreqInMs": 2000, "minDataFilterFreqInMs": 2000}
    rules = json.dumps([{"type": 3, "rule": [rule]}], separators=(",", ":"))
    change(
        tubemq, "admin_set_group_flow_control_rule", groupName=group, flowCtrlEnable="true", statusId="1",
        qryPriorityId="301", flowCtrlInfo=rules,
    )  # fmt: skip
    load = Load(tubemq, "three", 3, pause_s=0.005)
    target = f"tubemq://127.0.0.1:{tubemq.master}"
    with Consumer(target, group=group, topics=["three"], start="latest", heartbeat_interval=1) as consumer:
        deadline = time.monotonic() + SECONDS
        while len(consumer.assignment()) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        slow = gaps(consumer, 8)
        assert slow
        assert sum(gap > PACE_S * 0.8 for gap in slow) >= len(slow) * 0.8, slow
        change(tubemq, "admin_rmv_group_flow_control_rule", groupName=group)
        while sum(gap < PACE_S / 2 for gap in gaps(consumer, 3)) < 10:
            assert time.monotonic() < deadline, "rules that were taken back are followed"
    load.stop()


def test_a_group_is_let_in_while_it_waits(tubemq: Servers) -> None:
    group = f"guests_{time.time_ns()}"
    change(tubemq, "admin_update_topic_control_info", topicName="closed", enableAuthControl="true")
    target = f"tubemq://127.0.0.1:{tubemq.master}"
    with Consumer(target, group=group, topics=["closed"], heartbeat_interval=1) as consumer:
        with pytest.raises(GroupRefusedError) as caught:
            consumer.wait_ready(timeout=30)
        assert caught.value.details["code"] == 450
        change(
            tubemq, "admin_add_group_csmctrl_info", topicName="closed", groupName=group, consumeEnable="true",
            filterEnable="false",
        )  # fmt: skip
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                consumer.wait_ready(timeout=30)
                break
            except GroupRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.2)
        while not consumer.assignment():
            assert time.monotonic() < deadline
            time.sleep(0.2)
