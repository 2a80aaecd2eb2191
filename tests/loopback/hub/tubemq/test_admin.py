"""Administration of a hub as TubeMQ over HTTP: what it shows, what it changes, and who may do so."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from dataproxy.hub import Hub
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies

Raw = Callable[[Hub], Connection]
RULE = [{"type": 1, "rule": [{"zeroCnt": 3, "freqInMs": 100}]}]
TOKEN = "token-of-the-tests"


def ask(
    hub: Hub, method: str, path: str, body: object = None, *, token: str | None = None, **headers: str
) -> tuple[int, dict[str, Any]]:
    """Make one request and return status and answer."""
    connection = http.client.HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    connection.request(method, path, body=data, headers=sent)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def show(hub: Hub, what: str, **fields: object) -> dict[str, Any]:
    """Return a page that has to be there."""
    status, found = ask(hub, "GET", f"/hub/tubemq/{what}?{urlencode(fields)}")
    assert status == 200, found
    return found


def change(hub: Hub, what: str, body: object, method: str = "POST") -> dict[str, Any]:
    status, found = ask(hub, method, f"/hub/tubemq/{what}", body, token=hub.token)
    assert status == 200, found
    return found


def filled(hub: Hub, raw: Raw, count: int = 5) -> Reader:
    """Let a topic have messages, and a group read and confirm those of them."""
    connection = raw(hub)
    sender = Sender(connection, connection, "demo")
    for i in range(count):
        assert sender.send(0, b"%d" % i)["errCode"] == 200
    reader = Reader(raw(hub), "demo", "g")
    assert reader.register().errCode == 200
    assert len(bodies(reader.get())) == count
    return reader


def joined(connection: Connection, client: str, group: str = "g", topic: str = "demo") -> None:
    answer = connection.ask(
        "RegisterRequestC2M", clientId=client, groupName=group, hostName="127.0.0.1", topicList=[topic],
        subscribeInfo=[], topicCondition=[], requireBound=False,
    )  # fmt: skip
    assert answer.errCode == 200, answer


def test_what_there_is(hub: Hub, raw: Raw) -> None:
    reader = filled(hub, raw)
    joined(raw(hub), reader.client)
    topics = show(hub, "topics")["topics"]
    assert [(row["topic"], row["partitions"], row["brokers"][0]["port"]) for row in topics] == [
        ("demo", 3, hub.tubemq_port)
    ]
    assert show(hub, "partitions", topic="demo")["partitions"][0] == {
        "partition": 0, "first": 0, "next": 5 * INDEX, "messages": 5,
    }  # fmt: skip
    groups = show(hub, "groups")
    assert groups["next"] is None
    assert [(row["group"], row["kind"], row["members"], row["lag"]) for row in groups["groups"]] == [
        ("g", "divided", 1, 5)
    ]
    assert show(hub, "offsets", group="g", topic="demo")["offsets"] == [
        {
            "topic": "demo", "partition": 0, "member": reader.client, "offset": 0, "unconfirmed": 5, "first": 0,
            "next": 5 * INDEX, "lag": 5,
        }
    ]  # fmt: skip
    reader.commit()
    members = show(hub, "members", group="g")["members"]
    assert [(row["member"], row["address"], row["reads"], row["lag"]) for row in members] == [
        (reader.client, "127.0.0.1", 1, 0)
    ]


def test_groups_and_topics_come_in_pages(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    for i in range(5):
        joined(connection, f"c{i}", f"group{i}", f"topic{i}")
    for what, name in (("groups", "group"), ("topics", "topic")):
        first = show(hub, what, limit=3)
        assert ([row[name] for row in first[what]], first["next"]) == ([f"{name}{i}" for i in range(3)], f"{name}2")
        second = show(hub, what, limit=3, start=first["next"])
        assert ([row[name] for row in second[what]], second["next"]) == ([f"{name}{i}" for i in (3, 4)], None)
    for limit in ("0", "-1", "1001", "x", "1e3", "٣"):
        assert ask(hub, "GET", f"/hub/tubemq/groups?{urlencode({'limit': limit})}")[0] == 400


def test_a_reset_is_shown_then_done(start_hub: Callable[..., Hub], raw: Raw, tmp_path: Path) -> None:
    hub = start_hub(tmp_path / "s", tubemq_port=0)
    reader = filled(hub, raw)
    asked = {"group": "g", "topic": "demo", "partition": 0, "to": 2 * INDEX}
    plan = change(hub, "offsets", asked)
    assert plan["executed"] is False
    assert plan["offsets"] == [
        {"topic": "demo", "partition": 0, "member": reader.client, "before": 0, "after": 2 * INDEX}
    ]
    assert show(hub, "offsets", group="g")["offsets"][0]["offset"] == 0
    assert change(hub, "offsets", {**asked, "execute": True})["executed"] is True
    assert reader.commit()["currOffset"] == 2 * INDEX
    assert bodies(reader.get()) == [b"2", b"3", b"4"]
    hub.close()
    again = start_hub(tmp_path / "s", tubemq_port=0)
    assert show(again, "offsets", group="g")["offsets"][0]["offset"] == 2 * INDEX


def test_flow_rules_reach_members(hub: Hub, raw: Raw) -> None:
    assert change(hub, "rules", {"group": "g", "rules": RULE})["groups"] == {"g": RULE}
    assert change(hub, "rules", {"rules": json.dumps(RULE)})["cluster"] == RULE
    connection = raw(hub)
    joined(connection, "c1")
    answer = connection.ask(
        "HeartRequestC2M", clientId="c1", groupName="g", reportSubscribeInfo=False, defFlowCheckId=-2,
        groupFlowCheckId=-2,
    )  # fmt: skip
    assert "zeroCnt" in answer.groupFlowControlInfo and "zeroCnt" in answer.defFlowControlInfo
    assert change(hub, "rules?group=g", None, "DELETE") == {"cluster": RULE, "groups": {}}
    assert change(hub, "rules", None, "DELETE") == {"cluster": None, "groups": {}}
    assert ask(hub, "DELETE", "/hub/tubemq/rules", token=hub.token)[0] == 404


def test_rights_keep_groups_out(hub: Hub, raw: Raw) -> None:
    change(hub, "rights", {"topic": "demo", "controlled": True})
    found = change(hub, "rights", {"topic": "demo", "group": "g", "items": ["a"]})
    assert found["topics"] == [{"topic": "demo", "controlled": True, "groups": [{"group": "g", "items": ["a"]}]}]
    connection = raw(hub)
    fields = {"clientId": "c1", "hostName": "h", "topicList": ["demo"]}
    assert connection.ask("RegisterRequestC2M", groupName="h", **fields).errCode == 450
    assert connection.ask("RegisterRequestC2M", groupName="g", **fields).errCode == 455
    assert change(hub, "rights", {"topic": "demo", "group": "g", "allow": True})["topics"][0]["groups"] == [
        {"group": "g", "items": None}
    ]
    assert connection.ask("RegisterRequestC2M", groupName="g", **fields).errCode == 200


def test_a_move(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    joined(connection, "c1")
    asked = {"group": "g", "topic": "demo", "partition": 1, "member": "c1"}
    assert change(hub, "moves", asked) == asked
    for wrong, status in (
        ({"member": "c2"}, 404), ({"group": "x"}, 404), ({"partition": 9}, 400), ({"partition": "1"}, 400),
        ({"topic": "a/b"}, 400), ({"broker": 7}, 400), ({"partition": 2**31}, 400), ({"partition": True}, 400),
    ):  # fmt: skip
        assert ask(hub, "POST", "/hub/tubemq/moves", {**asked, **wrong}, token=hub.token)[0] == status


BAD: list[tuple[str, object, int, str]] = [
    ("offsets", {"group": "nobody", "to": "first"}, 404, "no group 'nobody'"),
    ("offsets", {"group": "g", "topic": "nope", "to": "first"}, 404, "no topic"),
    ("offsets", {"group": "g", "topic": "demo", "partition": 7, "to": "first"}, 404, "no partition 7"),
    ("offsets", {"group": "g", "topic": "demo", "partition": 0, "to": 1}, 400, "multiple of 28"),
    ("offsets", {"group": "g", "to": "end"}, 400, "no place"),
    ("offsets", {"group": "g", "to": "first", "execute": "yes"}, 400, "neither true nor false"),
    ("offsets", {"group": "g", "to": "first", "exeute": True}, 400, "names: group"),
    ("offsets", {"to": "first"}, 400, "group"),
    ("offsets", [], 400, "not that of this request"),
    ("offsets", b"{", 400, "not JSON"),
    ("offsets", b"[" * 60_000, 400, "not JSON"),
    ("rules", {"rules": "x"}, 400, "no JSON"),
    ("rules", {"group": "a/b", "rules": RULE}, 400, "groupName"),
    ("rules", {"group": 5, "rules": RULE}, 400, "no name"),
    ("rights", {"topic": "a#b", "controlled": True}, 400, "no name of a topic"),
    ("rights", {"topic": "demo"}, 400, "controlled"),
    ("rights", {"topic": "demo", "controlled": True, "group": "g"}, 400, "both given"),
    ("rights", {"topic": "demo", "group": "g", "items": "a"}, 400, "no list"),
    ("rights", {"topic": "demo", "group": "g", "allow": False}, 404, "no right"),
]


@pytest.mark.parametrize(("what", "body", "status", "text"), BAD)
def test_bad_requests_change_nothing(hub: Hub, raw: Raw, what: str, body: object, status: int, text: str) -> None:
    filled(hub, raw)
    before = [show(hub, one) for one in ("rules", "rights", "groups")]
    found = ask(hub, "POST", f"/hub/tubemq/{what}", body, token=hub.token)
    assert found[0] == status, found
    assert text in found[1]["errMsg"]
    assert [show(hub, one) for one in ("rules", "rights", "groups")] == before


@pytest.mark.parametrize(
    "path", ["members", "offsets", "partitions", "members?group=", "offsets?group=g%0a%2f..", "members?group=x"]
)
def test_what_is_not_there_is_told(hub: Hub, path: str) -> None:
    status, found = ask(hub, "GET", f"/hub/tubemq/{path}")
    assert status in (400, 404) and found["errMsg"]


@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
def test_changes_need_the_token(hub: Hub, token: str | None) -> None:
    given = None if token is None else token.encode().decode("latin-1")
    for method, what in (
        ("POST", "offsets"),
        ("POST", "rules"),
        ("DELETE", "rules"),
        ("POST", "rights"),
        ("POST", "moves"),
    ):
        assert ask(hub, method, f"/hub/tubemq/{what}", {"topic": "demo", "controlled": True}, token=given)[0] == 403
    assert show(hub, "rights") == {"topics": []}


def test_pages_of_other_sites_and_names_are_refused(hub: Hub) -> None:
    for path in ("/hub/tubemq/topics", "/webapi.htm?method=admin_query_topic_info"):
        assert ask(hub, "GET", path, Host="evil.example")[0] == 403
        assert ask(hub, "GET", path, Origin="http://evil.example")[0] == 403


def test_a_hub_that_is_no_master(start_hub: Callable[..., Hub]) -> None:
    hub = start_hub()
    status, found = ask(hub, "GET", "/hub/tubemq/topics")
    assert status == 404 and "tubemq_port" in found["errMsg"]
    assert ask(hub, "GET", "/webapi.htm?method=admin_query_topic_info")[0] == 404


def test_a_hub_with_credentials_shows_them_to_no_one_else(start_hub: Callable[..., Hub]) -> None:
    hub = start_hub(tubemq_port=0, secret_id="user", secret_key="key")
    for path in ("/hub/tubemq/topics", "/webapi.htm?method=admin_query_topic_info"):
        assert ask(hub, "GET", path)[0] == 403
        assert ask(hub, "GET", path, token=hub.token)[0] == 200


# --- TubeMQ's own calls

A = {"createUser": "tester", "modifyUser": "tester"}


def call(hub: Hub, method: str, *, post: bool = False, **fields: object) -> dict[str, Any]:
    query = urlencode({"method": method, **A, **fields})
    if post:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        status, found = ask(hub, "POST", "/webapi.htm", query.encode(), **form)
    else:
        status, found = ask(hub, "GET", f"/webapi.htm?{query}")
    assert status == 200, found
    return found


@pytest.mark.parametrize("post", [False, True])
def test_a_script_that_declares_a_topic_and_rights(start_hub: Callable[..., Hub], raw: Raw, post: bool) -> None:
    hub = start_hub(tubemq_port=0, partitions=3, token=TOKEN)
    may = {"confModAuthToken": TOKEN, "post": post}
    assert call(hub, "admin_query_cluster_default_setting")["errCode"] == 0
    state = call(hub, "admin_query_broker_run_status", brokerId=1)
    assert (state["count"], state["data"][0]["runStatus"], state["data"][0]["subStatus"]) == (1, "running", "idle")
    for method in ("admin_add_broker_configure", "admin_online_broker_configure"):
        found = call(hub, method, brokerId=1, brokerIp="127.0.0.1", brokerPort=8123, **may)
        assert found["data"][0]["success"] is True
    names = {"brokerId": 1, "topicName": "declared", "numPartitions": 3, "numTopicStores": 1}
    added = call(hub, "admin_add_new_topic_record", **names, **may)
    assert added["data"] == [
        {"brokerId": 1, "topicName": "declared", "success": True, "errCode": 200, "errInfo": "Ok!"}
    ]
    assert call(hub, "admin_add_topic_deploy_info", **names, **may)["data"][0]["errCode"] == 402
    assert call(hub, "admin_reload_broker_configure", brokerId=1, **may)["data"][0]["success"] is True
    info = call(hub, "admin_query_topic_info", topicName="declared")["data"][0]
    assert (info["isSrvAcceptPublish"], info["isSrvAcceptSubscribe"], info["totalRunNumPartCount"]) == (True, True, 3)
    on = call(hub, "admin_update_topic_control_info", topicName="declared", enableAuthControl="true", **may)
    assert on["data"][0]["errCode"] == 200
    rights = {"topicName": "declared", "consumeEnable": "true"}
    assert (
        call(hub, "admin_add_group_csmctrl_info", groupName="g,h", filterEnable="false", **rights, **may)["count"] == 2
    )
    filters = {"filterEnable": "true", "filterConds": ",a,b,"}
    assert call(hub, "admin_add_group_csmctrl_info", groupName="f", **filters, **rights, **may)["count"] == 1
    data = call(hub, "admin_query_topic_info", topicName="declared")["data"][0]["authData"]
    assert [one["groupName"] for one in data["authConsumeGroup"]] == ["f", "g", "h"]
    assert data["authFilterCondSet"][0] == {"groupName": "f", "condStatus": 2, "filterConds": ",a,b,"}
    connection = raw(hub)
    joined(connection, "c1", "g", "declared")
    fields = {"clientId": "c2", "hostName": "h", "topicList": ["declared"], "groupName": "other"}
    assert connection.ask("RegisterRequestC2M", **fields).errCode == 450


@pytest.mark.parametrize(
    ("method", "fields", "text"),
    [
        ("nonsense", {}, "unsupported method"),
        ("", {}, "unsupported method"),
        ("admin_add_new_topic_record", {"confModAuthToken": "wrong"}, "unauthorized request"),
        ("admin_add_new_topic_record", {"confModAuthToken": " "}, "confModAuthToken is missing"),
        ("admin_add_new_topic_record", {}, "brokerId is missing"),
        ("admin_add_new_topic_record", {"brokerId": 1}, "topicName is missing"),
        ("admin_add_new_topic_record", {"brokerId": "x", "topicName": "t"}, "only contain numbers"),
        ("admin_add_new_topic_record", {"brokerId": 1, "topicName": "t", "numPartitions": 4}, "numPartitions=3"),
        ("admin_add_new_topic_record", {"brokerId": 1, "topicName": "t", "numTopicStores": 2}, "numTopicStores=1"),
        ("admin_add_new_topic_record", {"brokerId": 1, "topicName": "a#b"}, "no name of a topic"),
        ("admin_add_new_topic_record", {"brokerId": 1, "topicName": "t", "createUser": "1"}, "createUser"),
        ("admin_add_new_topic_record", {"brokerId": 1, "topicName": ",".join(map(str, range(51)))}, "max allowed"),
        ("admin_add_broker_configure", {"brokerId": 2}, "only broker"),
        ("admin_online_broker_configure", {}, "brokerId is missing"),
        ("admin_online_broker_configure", {"brokerId": 1, "modifyUser": ""}, "modifyUser is missing"),
        ("admin_update_topic_control_info", {"enableAuthControl": "true"}, "topicName is missing"),
        ("admin_add_group_csmctrl_info", {"topicName": "nope", "groupName": "g"}, "not configure"),
        ("admin_add_group_csmctrl_info", {"topicName": "demo", "groupName": "1a/"}, "groupName"),
        (
            "admin_add_group_csmctrl_info",
            {"topicName": "demo", "groupName": "g", "filterEnable": "true"},
            "filter item",
        ),
    ],
)
def test_calls_that_are_refused(
    start_hub: Callable[..., Hub], raw: Raw, method: str, fields: dict[str, object], text: str
) -> None:
    hub = start_hub(tubemq_port=0, partitions=3, token=TOKEN)
    filled(hub, raw, 1)
    found = call(hub, method, **{"confModAuthToken": TOKEN, **fields})
    assert (found["result"], found["errCode"]) == (False, 400)
    assert text in found["errMsg"]
    assert show(hub, "rights") == {"topics": []}
    assert [row["topic"] for row in show(hub, "topics")["topics"]] == ["demo"]


def test_calls_of_which_single_records_fail(start_hub: Callable[..., Hub], raw: Raw) -> None:
    hub = start_hub(tubemq_port=0, topics=("known",), token=TOKEN)
    may = {"confModAuthToken": TOKEN}
    for method, fields, code in (
        ("admin_add_new_topic_record", {"brokerId": 1, "topicName": "other"}, 400),
        ("admin_add_new_topic_record", {"brokerId": 9, "topicName": "known"}, 401),
        ("admin_reload_broker_configure", {"brokerId": 9}, 401),
        ("admin_update_topic_control_info", {"topicName": "other", "enableAuthControl": "true"}, 401),
        ("admin_update_topic_control_info", {"topicName": "known"}, 403),
        ("admin_update_topic_control_info", {"topicName": "known", "enableAuthControl": "false"}, 403),
    ):
        found = call(hub, method, **fields, **may)
        assert (found["result"], found["data"][0]["success"], found["data"][0]["errCode"]) == (True, False, code)
    assert call(hub, "admin_query_broker_run_status", brokerId=9)["data"] == []
    assert call(hub, "admin_query_topic_info", topicName="other")["data"] == []
