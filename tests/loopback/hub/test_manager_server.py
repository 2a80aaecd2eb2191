"""The Manager server: discovery as official SDKs ask for it, authentication, the read-only API of the hub."""

import base64
import contextlib
import json
import socket
import urllib.parse
from http.client import HTTPConnection

import pytest

from dataproxy.cli.hub.client import HubClient
from dataproxy.hub import Hub
from tests.loopback.hub.peer import binary_frame, read_frame, wait_until

BY_GROUP = "/inlong/manager/openapi/dataproxy/getIpList/"
BY_CLUSTER = "/inlong/manager/openapi/dataproxy/getIpListByClusterName/"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@contextlib.contextmanager
def http(hub):
    """Give a function that sends a request and returns (status, headers, JSON)."""
    connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)

    def send(method, path, body="", headers=None):
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())

    with contextlib.closing(connection):
        yield send


@pytest.fixture
def ask(hub):
    with http(hub) as send:
        yield send


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (BY_GROUP + "g", "ip=10.0.0.1&version=dataproxy_sdk_cpp-v2.0.0", FORM),
        (BY_GROUP + "g", "ip=10.0.0.1&version=inlong-sdk-cpp-v3.2&protocolType=TCP", FORM),
        (BY_GROUP + "g?protocolType=tcp", "", {}),
        (BY_GROUP + "g", "ip=10.0.0.1&protocolType=TCP", {**FORM, "ip": "10.0.0.1", "protocolType": "TCP"}),
        (BY_GROUP + "g", "", {"protocolType": "Tcp"}),
        (BY_CLUSTER + "default", "protocolType=TCP&reportSourceType=INLONG", FORM),
    ],
    ids=["cpp-2022", "cpp-2026", "go", "java-https", "header", "cluster"],
)
def test_the_ways_of_the_sdks_to_ask(hub, ask, path, body, headers):
    status, answered, found = ask("POST", path, body, headers)
    assert status == 200
    assert answered["trace-id"]
    assert found == {
        "success": True,
        "errMsg": None,
        "data": {
            "clusterId": 1,
            "reportSourceType": None,
            "isIntranet": None,
            "isSwitch": None,
            "load": 20,
            "maxPacketLength": None,
            "nodeList": [
                {"id": 1, "ip": "127.0.0.1", "port": hub.port, "protocolType": "TCP", "nodeLoad": 65535},
            ],
        },
    }


def test_other_protocols_have_no_nodes(ask):
    _, _, found = ask("POST", BY_GROUP + "g?protocolType=UDP")
    assert found["success"] is True
    assert found["data"]["clusterId"] is None
    assert found["data"]["nodeList"] is None


def test_answers_change_at_run_time(hub, ask):
    hub.manager.cluster_id = 7
    hub.manager.is_intranet = 1
    hub.manager.is_switch = 3
    hub.manager.load = 60
    hub.manager.max_packet_length = 100000
    hub.manager.nodes = (("10.0.0.1", 46801), ("10.0.0.2", 46802))
    data = ask("POST", BY_GROUP + "g")[2]["data"]
    assert (data["clusterId"], data["isIntranet"], data["isSwitch"], data["load"]) == (7, 1, 3, 60)
    assert data["maxPacketLength"] == 100000
    assert [(node["id"], node["ip"], node["port"]) for node in data["nodeList"]] == [
        (1, "10.0.0.1", 46801),
        (2, "10.0.0.2", 46802),
    ]


def test_get_is_refused(ask):
    status, headers, found = ask("GET", BY_GROUP + "g")
    assert (status, headers["Allow"], found["success"]) == (405, "POST", False)


def test_denied_groups(hub, ask):
    hub.manager.denied = frozenset({"b_secret"})
    status, _, found = ask("POST", BY_GROUP + "b_secret")
    assert (status, found["success"], found["data"]) == (200, False, None)
    assert "b_secret" in found["errMsg"]
    assert ask("POST", BY_GROUP + "b_open")[2]["success"] is True


def test_groups_outside_the_list_of_topics(start_hub):
    hub = start_hub(topics=["a", "b/only"])
    connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    found = {}
    for group in ("a", "b", "c"):
        connection.request("POST", BY_GROUP + group)
        found[group] = json.loads(connection.getresponse().read())["success"]
    connection.close()
    assert found == {"a": True, "b": True, "c": False}


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Basic " + base64.b64encode(b"admin:87haw3VYTPqK5fK0").decode(), 200),
        ("Basic " + base64.b64encode(b"admin:wrong").decode(), 403),
        ("Basic " + base64.b64encode(b"nobody:87haw3VYTPqK5fK0").decode(), 403),
        ("Basic " + base64.b64encode(b"admin").decode(), 403),
        ("basic " + base64.b64encode(b"admin:87haw3VYTPqK5fK0").decode(), 403),
        ("Basic not base64", 403),
        ("Basic", 403),
        (None, 403),
    ],
)
def test_basic_authentication(hub, ask, header, status):
    hub.manager.secrets = {"admin": "87haw3VYTPqK5fK0"}
    assert "87haw3VYTPqK5fK0" not in repr(hub.manager)
    headers = {} if header is None else {"authorization": header}
    assert ask("POST", BY_GROUP + "g", headers=headers)[0] == status
    assert ask("GET", "/hub/stats", headers=headers)[0] == status
    assert ask("GET", "/healthz")[0] == 200


def test_counts_stats_and_records(hub, ask, connect):
    connection = connect(hub)
    for i in range(5):
        connection.sendall(binary_frame(i, [b"\x00%d" % i, b"b"], "g", f"s{i % 2}"))
        read_frame(connection)
    assert ask("GET", "/hub/stats")[2]["records"] == 10
    rows = ask("GET", "/hub/counts")[2]["streams"]
    assert [(row["group"], row["stream"], row["entries"], row["records"]) for row in rows] == [
        ("g", "s0", 3, 6),
        ("g", "s1", 2, 4),
    ]
    first = ask("GET", "/hub/records?group=g&limit=3")[2]
    assert [(r["offset"], r["index"], base64.b64decode(r["body"])) for r in first["records"]] == [
        (0, 0, b"\x000"),
        (0, 1, b"b"),
        (1, 0, b"\x001"),
        (1, 1, b"b"),
    ]
    rest = ask("GET", f"/hub/records?group=g&start={first['next']}")[2]
    assert [r["offset"] for r in rest["records"]] == [2, 2, 3, 3, 4, 4]
    one = ask("GET", "/hub/records?" + urllib.parse.urlencode({"group": "g", "stream": "s1"}))[2]
    assert [r["offset"] for r in one["records"]] == [1, 1, 3, 3]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "group=",
        "group=g&start=-1",
        "group=g&limit=x",
        "group=g&limit=10001",
        "group=g&start=0,1",
        "group=g&start=0,x:1",
        "group=g&start=0,1:-1",
        "group=g&limit=" + "9" * 6000,
        "group=g&start=" + "9" * 6000,
        "group=g&start=0,1:" + "9" * 6000,
    ],
)
def test_bad_parameters(ask, query):
    status, _, found = ask("GET", f"/hub/records?{query}")
    assert status == 400
    assert "parameter" in found["errMsg"]
    assert "int_max_str_digits" not in found["errMsg"]


def test_unknown_paths_and_large_bodies(ask):
    assert ask("GET", "/nowhere")[0] == 404
    assert ask("POST", BY_GROUP + "g", "x=" + "y" * 100_000, FORM)[0] == 413


def pages(ask, query: str, limit: int) -> list[list[tuple[str, int, int, str]]]:
    """Return what each page holds, up to an empty one."""
    found, place = [], "0"
    while True:
        page = ask("GET", f"/hub/records?{query}&start={place}&limit={limit}")[2]
        if not page["records"]:
            assert page["next"] == place
            return found
        found.append([(r["stream_id"], r["partition"], r["offset"], r["body"]) for r in page["records"]])
        place = page["next"]


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_pages_of_several_logs_skip_nothing(start_hub, limit):
    hub = start_hub(partitions=4)
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
        for i in range(40):
            one.sendall(binary_frame(i, [b"%d" % i], "g", f"s{i % 5}"))
            read_frame(one)
    with http(hub) as ask:
        found = [row for page in pages(ask, "group=g", limit) for row in page]
        only = [row for page in pages(ask, "group=g&stream=s3", limit) for row in page]
    assert sorted(int(base64.b64decode(row[3])) for row in found) == list(range(40))
    assert len({row[1] for row in found}) > 1, "the streams are in several logs"
    assert [int(base64.b64decode(row[3])) for row in only] == list(range(3, 40, 5))
    client = HubClient(hub.manager_url)
    assert sum(record is not None for record in until_a_pause(client.records("g", "s3", 0))) == 8


def until_a_pause(records):
    """Yield up to and with the first None."""
    for record in records:
        yield record
        if record is None:
            return


def test_a_page_is_bounded_in_bytes(hub, ask, connect):
    connection = connect(hub)
    for i in range(40):
        connection.sendall(binary_frame(i, [bytes([i]) * 500_000]))
        read_frame(connection)
    found = pages(ask, "group=g", 10_000)
    assert [len(page) for page in found] == [2] * 20
    assert [row[2] for page in found for row in page] == list(range(40))


def test_closing_from_a_thread_of_the_server_does_not_wait_for_itself():
    for submit in (lambda d, f: d._loop.call_soon_threadsafe(f), lambda d, f: d._workers.submit(f)):
        hub = Hub()
        submit(hub._manager, hub.close)
        wait_until(hub._manager._loop.is_closed)
