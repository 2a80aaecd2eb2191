"""Faults over HTTP: the admin API of the Manager server, and the Manager's own faults."""

import json
import threading
from http.client import HTTPConnection, RemoteDisconnected

import pytest

from dataproxy.hub import Hub
from tests.loopback.faults.test_hub_faults import ack, ask, refused

DISCOVER = "/inlong/manager/openapi/dataproxy/getIpList/"


def call(hub, method, path, value=None, raw=None):
    """Send one request; return (status, JSON)."""
    connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    try:
        headers = {"Authorization": f"Bearer {hub.token}", "Content-Type": "application/json"}
        connection.request(method, path, body=json.dumps(value) if raw is None else raw, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def nodes(hub, group="g"):
    """Return the ports that the Manager names."""
    found = call(hub, "POST", DISCOVER + group)[1]["data"]["nodeList"]
    return [node["port"] for node in found or ()]


def test_a_fault_from_its_arming_to_its_end(hub, dial):
    c = dial(hub)
    status, armed = call(hub, "POST", "/hub/faults", {"kind": "refuse", "code": 114, "every": 2, "group": "g"})
    assert status == 201
    assert armed == {
        "id": armed["id"], "seen": 0, "fired": 0, "kind": "refuse", "code": 114, "every": 2, "group": "g"
    }  # fmt: skip
    assert [ask(c, 1), ask(c, 2)] == [ack(1), refused(2, 114)]
    path = f"/hub/faults/{armed['id']}"
    assert call(hub, "GET", path) == (200, {**armed, "seen": 2, "fired": 1})
    assert call(hub, "GET", "/hub/faults") == (200, {"faults": [{**armed, "seen": 2, "fired": 1}]})
    assert call(hub, "DELETE", path) == (200, {**armed, "seen": 2, "fired": 1})
    assert call(hub, "DELETE", path)[0] == 404
    assert [ask(c, 3), ask(c, 4)] == [ack(3), ack(4)]


def test_all_faults_end_at_once(hub):
    for kind in ("drop_reply", "kill", "manager_down"):
        assert call(hub, "POST", "/hub/faults", {"kind": kind})[0] == 201
    assert not any(listener.listens for listener in hub.listeners)
    status, found = call(hub, "DELETE", "/hub/faults")
    assert (status, [one["kind"] for one in found["faults"]]) == (200, ["drop_reply", "kill", "manager_down"])
    assert all(listener.listens for listener in hub.listeners)
    assert call(hub, "GET", "/hub/faults") == (200, {"faults": []})


def test_bytes_travel_as_hexadecimal_digits(hub):
    armed = call(hub, "POST", "/hub/faults", {"kind": "garbage", "data": "00ff"})[1]
    assert armed["data"] == "00ff"
    assert hub.faults.get(armed["id"]).fault.data == b"\x00\xff"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "not JSON"),
        (b"[" * 60000, "not JSON"),
        (b"[]", "object with a kind"),
        (b"{}", "kind None"),
        (b'{"kind": "refus", "code": 1}', "did you mean 'refuse'"),
        (b'{"kind": ["refuse"]}', "no kind"),
        (b'{"kind": "refuse"}', "needs code"),
        (b'{"kind": "refuse", "code": "114"}', "code='114'"),
        (b'{"kind": "refuse", "cod": 114}', "did you mean 'code'"),
        (b'{"kind": "garbage", "data": "0g"}', "hexadecimal"),
        (b'{"kind": "drop_reply", "listener": 6}', "listener 6 does not exist"),
        (b'{"kind": "drop_reply", "nth": 0}', "nth=0"),
        (b'{"kind": "drop_reply", "group": "\\ud800"}', "group="),
    ],
)
def test_a_wrong_fault_is_named_and_not_armed(hub, body, text):
    status, found = call(hub, "POST", "/hub/faults", raw=body)
    assert status == 400
    assert text in found["errMsg"]
    assert not len(hub.faults)


def test_too_many_faults(hub):
    for _ in range(64):
        hub.faults.add("drop_reply")
    status, found = call(hub, "POST", "/hub/faults", {"kind": "drop_reply"})
    assert (status, "full" in found["errMsg"]) == (503, True)
    assert len(hub.faults) == 64


def test_listeners_over_http(hub, dial):
    found = call(hub, "GET", "/hub/listeners")[1]["listeners"]
    assert [(one["index"], one["protocol"], one["listens"]) for one in found] == [
        (i, "tcp" if i < 3 else "http", True) for i in range(6)
    ]
    assert call(hub, "POST", "/hub/listeners/1/kill")[1]["listens"] is False
    with pytest.raises(ConnectionRefusedError):
        dial(hub, 1)
    assert call(hub, "POST", "/hub/listeners/1/restart")[1]["listens"] is True
    assert ask(dial(hub, 1), 1) == ack(1)
    assert call(hub, "POST", "/hub/listeners/2/refuse")[1]["listens"] is False
    assert call(hub, "POST", "/hub/listeners/9/kill")[0] == 404
    assert call(hub, "POST", "/hub/listeners/1/explode")[0] == 404


def test_a_drained_listener_leaves_the_list(hub):
    ports = [listener.port for listener in hub.listeners]
    assert nodes(hub) == ports
    with hub.faults.add("drained", listener=1):
        assert nodes(hub) == [ports[0], ports[2]]
    with hub.faults.add("drained"):
        assert nodes(hub) == []
    assert nodes(hub) == ports


def test_a_manager_that_is_down(hub):
    with hub.faults.add("manager_down", nth=2) as fault:
        assert nodes(hub)
        with pytest.raises((RemoteDisconnected, ConnectionResetError)):
            nodes(hub)
        assert nodes(hub)
        assert (fault.seen, fault.fired) == (3, 1)


def test_a_manager_that_answers_nonsense(hub):
    with hub.faults.add("manager_answer", data=b"\xffnonsense", status=500, group="g", every=2):
        connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
        connection.request("POST", DISCOVER + "g")
        assert connection.getresponse().read().startswith(b"{")
        connection.request("POST", DISCOVER + "other")
        assert connection.getresponse().read().startswith(b"{")
        connection.request("POST", DISCOVER + "g")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (500, b"\xffnonsense")
        connection.close()


def test_a_manager_that_hangs_answers_when_the_fault_is_taken_back(hub):
    found = []
    with hub.faults.add("manager_slow") as fault:
        waiting = threading.Thread(target=lambda: found.extend(nodes(hub)))
        waiting.start()
        fault.wait()
        assert call(hub, "GET", "/healthz") == (200, {"ok": True})
        assert not found
    waiting.join()
    assert found == [listener.port for listener in hub.listeners]


def test_a_hub_closes_while_its_manager_hangs():
    with Hub() as hub:
        hub.faults.add("manager_slow")
        connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
        connection.request("POST", DISCOVER + "g")
        next(iter(hub.faults)).wait()
    connection.close()
