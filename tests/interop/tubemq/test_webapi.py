"""TubeMQ's own HTTP calls: the same ones to its master and to a hub, and what both answer."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from dataproxy.hub import Hub
from tests.support.tubekit import KIT, Servers
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(400)

TOKEN = "token-of-the-tests"
USER = {"createUser": "tester", "modifyUser": "tester"}
MAY = {**USER, "confModAuthToken": "@TOKEN"}
TOPIC = {"topicName": "three"}
#: Calls in their order; the topic `three`, with 3 partitions, is there.
CALLS: list[dict[str, object]] = [
    {"method": "admin_query_cluster_default_setting"},
    {"method": "admin_query_broker_run_status", "brokerId": 1},
    {"method": "admin_query_broker_run_status", "brokerId": 9},
    {"method": "admin_query_broker_run_status", "brokerId": "x"},
    {"method": "admin_query_topic_info", **TOPIC},
    {"method": "admin_query_topic_info", "topicName": "nope"},
    {"method": "nonsense"},
    {"method": "admin_reload_broker_configure", "brokerId": 1, **USER},
    {"method": "admin_reload_broker_configure", "brokerId": 1, **USER, "confModAuthToken": "wrong"},
    {"method": "admin_reload_broker_configure", "brokerId": 1, "confModAuthToken": "@TOKEN"},
    {"method": "admin_reload_broker_configure", "brokerId": 1, **MAY, "modifyUser": "1"},
    {"method": "admin_reload_broker_configure", **MAY},
    {"method": "admin_online_broker_configure", "brokerId": 9, **MAY},
    {"method": "admin_add_new_topic_record", "brokerId": 1, "numPartitions": 3, **TOPIC, **MAY},
    {"method": "admin_add_new_topic_record", "brokerId": 9, "topicName": "new", **MAY},
    {"method": "admin_add_new_topic_record", "brokerId": 1, **MAY},
    {"method": "admin_add_new_topic_record", "brokerId": 1, "topicName": "new", "numPartitions": "x", **MAY},
    {"method": "admin_update_topic_control_info", **TOPIC, **MAY},
    {"method": "admin_update_topic_control_info", "topicName": "nope", "enableAuthControl": "true", **MAY},
    {"method": "admin_update_topic_control_info", **TOPIC, "enableAuthControl": "true", **MAY},
    {"method": "admin_update_topic_control_info", **TOPIC, "enableAuthControl": "true", **MAY},
    {"method": "admin_add_group_csmctrl_info", **TOPIC, "groupName": "g1,g2", "consumeEnable": "true", **MAY},
    {"method": "admin_add_group_csmctrl_info", **TOPIC, "groupName": "g1", "consumeEnable": "true", **MAY},
    {"method": "admin_add_group_csmctrl_info", **TOPIC, "groupName": "g3", "filterEnable": "true",
     "filterConds": ",a,b,", **MAY},
    {"method": "admin_add_group_csmctrl_info", **TOPIC, "groupName": "1a/", **MAY},
    {"method": "admin_add_group_csmctrl_info", "topicName": "nope", "groupName": "g1", **MAY},
    {"method": "admin_add_group_csmctrl_info", "groupName": "g1", **MAY},
    {"method": "admin_query_topic_info", **TOPIC},
    {"method": "admin_update_topic_control_info", **TOPIC, "enableAuthControl": "false", **MAY},
]  # fmt: skip
#: Values that are those of one server, or times, or the order of a table.
OWN = {"brokerIp", "brokerPort", "createDate", "modifyDate", "createUser", "modifyUser", "errInfo", "errMsg"}
#: States of a real broker, which go on changing for some time after its start.
STATES = {
    "isRepAbnormal", "isConfChanged", "isConfLoaded", "isBrokerOnline", "runStatus", "subStatus", "brokerVersion",
}  # fmt: skip


def call(port: int, token: str, fields: dict[str, object]) -> Any:
    query = urlencode({name: str(value).replace("@TOKEN", token) for name, value in fields.items()})
    with urlopen(f"http://127.0.0.1:{port}/webapi.htm?{query}", timeout=30) as answer:
        return json.loads(answer.read())


def compared(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Return both, as far as ours has names: TubeMQ's answers have settings that a hub does not have."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        assert ours.keys() <= theirs.keys()
        pairs = {name: compared(value, theirs[name]) for name, value in ours.items() if name not in OWN | STATES}
        return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        both = [compared(*pair) for pair in zip(by_group(ours), by_group(theirs), strict=True)]
        return [pair[0] for pair in both], [pair[1] for pair in both]
    return ours, theirs


def by_group(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda one: str(one.get("groupName", "")))


def test_a_hub_answers_as_tubemqs_master(tubemq: Servers) -> None:
    web = int(tubemq.env["TUBE_MASTER_WEB"])
    topic = {"method": "admin_query_topic_info", **TOPIC}
    assert eventually(lambda: call(web, "", topic)["data"][0]["isSrvAcceptSubscribe"])
    assert eventually(lambda: call(web, "", CALLS[1])["data"][0]["acceptSubscribe"] == "true")
    with Hub(tubemq_port=0, partitions=3, topics=("three",), token=TOKEN) as hub:
        for fields in CALLS:
            theirs = call(web, tubemq.env.get("TUBE_TOKEN", "abc"), fields)
            ours = call(hub.manager_port, TOKEN, fields)
            one, other = compared(ours, theirs)
            assert one == other, fields
            assert bool(ours.get("errMsg")) == bool(theirs.get("errMsg"))


def test_a_script_for_tubemqs_master_declares_a_topic_at_a_hub(tmp_path: Path) -> None:
    """The kit's own script, as it is: it looks for parts of the answers' texts."""
    with Hub(tubemq_port=0, partitions=3, token=TOKEN) as hub:
        env = {
            **os.environ, "INTEROP_HOME": str(tmp_path), "TUBE_MASTER_WEB": str(hub.manager_port), "TUBE_TOKEN": TOKEN,
            "INTEROP_START_LIMIT": "20",
        }  # fmt: skip
        words = [str(KIT), "tube-topic", "declared", "3"]
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stdout.startswith("topic declared, 3 partitions"), done
        assert hub._tubemq is not None and hub._tubemq.run(hub._tubemq.layout.topics) == ["declared"]
        again = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert again.returncode != 0 and '"errCode":402' in again.stderr
