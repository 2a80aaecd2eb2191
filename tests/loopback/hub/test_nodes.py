"""Several nodes in one hub, and what the Manager says of them, changed while it runs."""

from __future__ import annotations

import json
from http.client import HTTPConnection

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.hub.nodes import Node
from tests.loopback.hub.peer import binary_frame, read_frame
from tests.loopback.hub.test_report import post, raw
from tests.support.reference.vectors import by_name

TOKEN = "a-token-of-tests"
LIST = "/inlong/manager/openapi/dataproxy/getIpList/g?protocolType="


def call(hub: Hub, method: str, path: str, value: object = None, *, trusted: bool = True) -> tuple[int, dict]:
    connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    headers = {"Content-Type": "application/json"}
    if trusted:
        headers["Authorization"] = f"Bearer {TOKEN}"
    connection.request(method, path, None if value is None else json.dumps(value), headers)
    answer = connection.getresponse()
    try:
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def listed(hub: Hub, protocol: str) -> list[int]:
    return [node["port"] for node in call(hub, "POST", LIST + protocol)[1]["data"]["nodeList"] or []]


def told(hub: Hub, port: int) -> bytes:
    """Return the answer to a frame at a TCP port."""
    with raw(hub, port) as peer:
        peer.sendall(binary_frame(1, [b"x"]))
        return read_frame(peer)


@pytest.fixture
def cluster(start_hub) -> Hub:
    return start_hub(nodes=3, token=TOKEN)


def test_each_node_is_a_proxy(cluster):
    tcp, http = [node.tcp.port for node in cluster.nodes], [node.http.port for node in cluster.nodes]
    assert [listener.port for listener in cluster.listeners] == tcp
    assert [node.http.index for node in cluster.nodes] == [3, 4, 5]
    assert listed(cluster, "TCP") == tcp == listed(cluster, "")
    assert listed(cluster, "http") == http
    assert listed(cluster, "UDP") == []
    assert cluster.http_target == "tcp://" + ",".join(f"127.0.0.1:{port}" for port in http)
    for port in http:
        assert post(cluster, port=port) == (0, "Ok")
    assert len(list(cluster.records("g"))) == 3


def test_ports_that_are_given_follow_each_other(start_hub):
    free = start_hub(nodes=2)
    first = [free.nodes[0].tcp.port, free.nodes[0].http.port]
    free.close()
    hub = start_hub(nodes=1, port=first[0], http_port=first[1])
    assert (hub.port, hub.http_port) == tuple(first)


def test_a_drained_node_says_so_and_leaves_the_list(cluster):
    node = cluster.nodes[1]
    node.drain()
    assert (node.drained, node.service) == (True, "stopped")
    assert b"errCode=2" in told(cluster, node.tcp.port)
    assert post(cluster, port=node.http.port) == (2, "Service closed")
    assert node.tcp.port not in listed(cluster, "TCP")
    assert node.http.port not in listed(cluster, "HTTP")
    assert post(cluster, port=cluster.nodes[0].http.port) == (0, "Ok")
    node.undrain()
    assert (node.drained, node.service) == (False, "running")
    assert len(listed(cluster, "HTTP")) == 3
    assert post(cluster, port=node.http.port) == (0, "Ok")


def test_loads_are_those_of_a_node(cluster):
    cluster.nodes[2].set_load(77)
    data = call(cluster, "POST", LIST + "TCP")[1]["data"]["nodeList"]
    assert [node["nodeLoad"] for node in data] == [65535, 65535, 77]
    assert [node.load for node in cluster.nodes] == ["auto", "auto", 77]
    cluster.set_load("unknown")
    assert [node.load for node in cluster.nodes] == ["unknown"] * 3
    for load in ("many", "65535", "-1", "9" * 30, "²"):
        with pytest.raises(ConfigError, match="is not allowed"):
            cluster.nodes[0].set_load(load)


def test_profiles_are_those_of_a_listener(cluster):
    broken = bytes.fromhex(by_name("malformed", "bin_body_len_minus_1")["hex"])  # compat closes, strict answers 95
    node = cluster.nodes[0]
    assert [listener.profile for one in cluster.nodes for listener in one.listeners] == ["strict"] * 6
    node.http.set_profile("compat")
    assert [listener.profile for listener in node.listeners] == ["strict", "compat"]
    quoted = {"groupId": "", "callback": "a b"}
    assert post(cluster, port=cluster.nodes[1].http.port, **quoted)[0] == 100
    with raw(cluster, node.http.port) as peer:
        peer.sendall(b"POST /dataproxy/message HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded;a=b\r\n\r\n")
        assert b'"code":"36"' in peer.recv(1000)
    node.set_profile("compat")
    with raw(cluster, node.tcp.port) as peer:
        peer.sendall(broken)
        assert peer.recv(100) == b""
    assert b"errCode=95" in _answer(cluster, cluster.nodes[1].tcp.port, broken)
    with pytest.raises(ConfigError, match="profile 'lax' is unknown"):
        node.set_profile("lax")


def _answer(hub: Hub, port: int, frame: bytes) -> bytes:
    with raw(hub, port) as peer:
        peer.sendall(frame)
        return read_frame(peer)


def test_a_killed_node_is_gone_on_both_ports_and_comes_back(cluster):
    node = cluster.nodes[0]
    node.kill()
    for listener in node.listeners:
        with pytest.raises(ConnectionRefusedError):
            raw(cluster, listener.port)
    assert b"dpIp" in told(cluster, cluster.nodes[1].tcp.port)
    node.restart()
    node.refuse()
    assert not any(listener.listens for listener in node.listeners)
    node.restart()
    assert b"dpIp" in told(cluster, node.tcp.port)


def test_nodes_are_set_over_http(cluster):
    value = {"load": 5, "profile": "compat", "service": "not_ready"}
    status, node = call(cluster, "POST", "/hub/nodes/2", value)
    assert status == 200
    assert node == cluster.nodes[2].to_json() == call(cluster, "GET", "/hub/nodes")[1]["nodes"][2]
    assert (node["load"], node["service"], node["listeners"]["http"]["profile"]) == (5, "not_ready", "compat")
    assert call(cluster, "POST", "/hub/nodes/1/drain", {})[1]["drained"]
    assert listed(cluster, "TCP") == [cluster.nodes[0].tcp.port, cluster.nodes[2].tcp.port]
    for what, listens in (("kill", False), ("restart", True), ("refuse", False), ("restart", True)):
        call(cluster, "POST", f"/hub/nodes/0/{what}", {})
        assert cluster.nodes[0].tcp.listens == listens


@pytest.mark.parametrize(
    ("path", "value", "status", "words"),
    [
        ("/hub/nodes/3", {"load": 1}, 404, "there is no node 3"),
        ("/hub/nodes/0", {}, 400, "are not those of a node"),
        ("/hub/nodes/0", {"colour": 1}, 400, "are not those of a node"),
        ("/hub/nodes/0", {"load": [1]}, 400, "give a text or a number"),
        ("/hub/nodes/0", {"load": "x"}, 400, "is not allowed"),
        ("/hub/nodes/0", {"load": 5, "service": "x"}, 400, "'x' is unknown"),
        ("/hub/nodes/0", {"service": "stopped", "profile": "x"}, 400, "profile 'x' is unknown"),
        ("/hub/nodes/0/paint", {}, 404, "Not Found"),
        ("/hub/manager", {"isswitch": 1}, 400, "did you mean 'isSwitch'"),
        ("/hub/manager", {"isSwitch": 1, "load": "much"}, 400, "the setting load is 'much'"),
        ("/hub/manager", [], 400, "not a JSON object"),
        ("/hub/manager", {"clusters": {"west": {"node": []}}}, 400, "the setting 'node' is unknown"),
        ("/hub/manager", {"clusters": {"west": {"clusterId": 0}}}, 400, "the setting clusterId is 0"),
        ("/hub/manager", {"clusters": []}, 400, "is no object of at most"),
        ("/hub/manager", {"groups": {"g": 1}}, 400, "the setting groups has 1"),
    ],
)
def test_bad_settings_change_nothing(cluster, path, value, status, words):
    before = call(cluster, "GET", "/hub/manager"), call(cluster, "GET", "/hub/nodes")
    found, answer = call(cluster, "POST", path, value)
    assert found == status
    assert words in answer["errMsg"]
    assert (call(cluster, "GET", "/hub/manager"), call(cluster, "GET", "/hub/nodes")) == before


def test_of_refused_settings_none_is_made_for_a_moment(cluster, monkeypatch):
    made = []
    monkeypatch.setattr(Node, "set_load", lambda _node, load: made.append(load))
    monkeypatch.setattr(Node, "set_service", lambda _node, service: made.append(service))
    for value in ({"load": 5, "profile": "x"}, {"service": "stopped", "load": "x"}, {"load": 5, "service": "x"}):
        assert call(cluster, "POST", "/hub/nodes/0", value)[0] == 400
    assert made == []


def test_the_answer_of_the_manager_is_set_over_http(cluster):
    value = {
        "clusterId": 9, "isIntranet": 1, "isSwitch": 4, "load": 3, "maxPacketLength": 100_000,
        "nodes": [{"ip": "10.0.0.1", "port": 1}], "httpNodes": [{"ip": "h", "port": 2}], "denied": ["bad"],
    }  # fmt: skip
    assert call(cluster, "POST", "/hub/manager", value, trusted=False)[0] == 403
    status, shown = call(cluster, "POST", "/hub/manager", value)
    assert (status, shown) == (200, {**value, "clusters": {}, "groups": {}, "secretIds": []})
    data = call(cluster, "POST", LIST + "HTTP")[1]["data"]
    assert data["nodeList"] == [{"id": 1, "ip": "h", "port": 2, "protocolType": "HTTP", "nodeLoad": 65535}]
    assert {name: data[name] for name in ("clusterId", "isIntranet", "isSwitch", "load", "maxPacketLength")} == {
        name: value[name] for name in ("clusterId", "isIntranet", "isSwitch", "load", "maxPacketLength")
    }
    assert listed(cluster, "TCP") == [1]
    denied = call(cluster, "POST", "/inlong/manager/openapi/dataproxy/getIpList/bad")[1]
    assert not denied["success"]
    status, shown = call(cluster, "POST", "/hub/manager", {"secrets": {"me": "key"}, "isSwitch": None, "nodes": []})
    assert (shown["secretIds"], shown["isSwitch"]) == (["me"], None)
    assert "key" not in json.dumps(shown)
    assert call(cluster, "POST", LIST + "TCP", trusted=False)[0] == 403


def test_other_clusters_are_set_over_http(cluster):
    west = {
        "clusterId": 7, "nodes": [{"ip": "10.0.0.1", "port": 1}], "httpNodes": [], "isSwitch": 2,
        "maxPacketLength": None,
    }  # fmt: skip
    value = {"clusters": {"west": west, "here": {"clusterId": 3}}, "groups": {"app": "west", "other": "here"}}
    status, shown = call(cluster, "POST", "/hub/manager", value)
    assert status == 200
    assert shown["clusters"]["west"] == west
    assert shown["groups"] == value["groups"]
    for path in ("getIpList/app", "getIpListByClusterName/west"):
        data = call(cluster, "POST", f"/inlong/manager/openapi/dataproxy/{path}?protocolType=TCP")[1]["data"]
        assert (data["clusterId"], data["isSwitch"]) == (7, 2)
        assert [(one["ip"], one["port"]) for one in data["nodeList"]] == [("10.0.0.1", 1)]
    data = call(cluster, "POST", "/inlong/manager/openapi/dataproxy/getIpList/app?protocolType=HTTP")[1]["data"]
    assert data["nodeList"] is None
    data = call(cluster, "POST", "/inlong/manager/openapi/dataproxy/getIpList/other?protocolType=HTTP")[1]["data"]
    assert (data["clusterId"], len(data["nodeList"])) == (3, 3)
    answer = call(cluster, "POST", "/inlong/manager/openapi/dataproxy/getIpListByClusterName/north")[1]
    assert not answer["success"]


def test_a_fault_can_be_that_of_one_kind_of_listener(cluster):
    with cluster.faults.add("drained", listener=cluster.nodes[0].http.index):
        assert len(listed(cluster, "HTTP")) == 2
        assert len(listed(cluster, "TCP")) == 3
