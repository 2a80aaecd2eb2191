"""The port of the HTTP report: stored like everything else, bounded like everything else, wrong on request."""

from __future__ import annotations

import socket
from http.client import HTTPConnection

import pytest
import urllib3

from dataproxy.errors import ConfigError, HubError
from dataproxy.hub import Hub
from tests.campaigns.httppeers.requests import CLOSED, HOSTILE, run
from tests.loopback.hub.peer import read_all, wait_until
from tests.support.reference import report

FORM = {"Content-Type": report.TYPE}
PATH = "/dataproxy/message"


def raw(hub: Hub, port: int | None = None) -> socket.socket:
    return socket.create_connection(("127.0.0.1", hub.http_port if port is None else port), timeout=30)


def post(hub: Hub, body: str = "x", port: int | None = None, **fields: str) -> tuple[int, str]:
    """Send a report by an independent client; return its code and text."""
    pool = urllib3.PoolManager(retries=False, timeout=30)
    given = {"groupId": "g", "streamId": "s", "body": body, **fields}
    url = f"http://127.0.0.1:{hub.http_port if port is None else port}{PATH}"
    answer = pool.request("POST", url, fields=given, encode_multipart=False)
    pool.clear()
    assert answer.status == 200
    value = answer.json()
    return int(value["code"]), value["msg"]


@pytest.mark.parametrize("durable", [False, True])
def test_reports_are_in_the_store_when_they_are_answered(start_hub, tmp_path, durable):
    hub = start_hub(tmp_path / "store" if durable else None)
    assert post(hub, "one\ntwo", cnt="2", dt="17") == (0, "Ok")
    assert post(hub, "ä&=+ \x00") == (0, "Ok")
    first, second = hub.records("g", "s")
    assert (first.body, first.attrs["cnt"], first.attrs["dt"]) == (b"one\ntwo", "2", "17")
    assert first.attrs["clientIp"] == "127.0.0.1"
    assert second.body == "ä&=+ \x00".encode()
    assert hub.stats()["entries"] == 2


def test_the_golden_requests_on_one_connection(start_hub, vectors):
    hub = start_hub(topics=["test_group"], profile="compat")
    connection = HTTPConnection("127.0.0.1", hub.http_port, timeout=30)
    for vector in vectors["http"]:
        connection.request(vector["method"], vector["target"], vector["body"] or None, vector["headers"])
        answer = connection.getresponse()
        assert (answer.status, answer.read().decode()) == (200, vector["reply_body"]), vector["name"]
        assert answer.will_close == vector["server_closes"], vector["name"]
    connection.close()
    assert [record.body for record in hub.records("test_group")] == [b"a\nb"] * 4


def test_requests_without_waiting_are_answered_in_turn(hub):
    requests = [
        report.build("POST", PATH, f"groupId=g&streamId=s&body=m{i}".encode() if i % 3 else b"groupId=g", FORM)
        for i in range(60)
    ]
    with raw(hub) as peer:
        peer.sendall(b"".join(requests) + report.build("GET", "/dataproxy/heartbeat", headers={"Connection": "close"}))
        answers = read_all(peer).split(b"HTTP/1.1 200 OK\r\n")[1:]
    codes = [report.answer_text(b"HTTP/1.1 200 OK\r\n" + answer)[0] for answer in answers]
    assert codes == [0 if i % 3 else 101 for i in range(60)] + [0]
    assert [record.body for record in hub.records("g")] == [b"m%d" % i for i in range(60) if i % 3]


def test_a_connection_ends_behind_the_answer_that_says_so(hub):
    data = report.build("POST", PATH, b"groupId=g&streamId=s&body=x", {**FORM, "Connection": "close"})
    with raw(hub) as peer:
        peer.sendall(data + data)
        assert read_all(peer).count(b'"code":"0"') == 1
    wait_until(lambda: hub.stats()["closed"]["answered"] == 1)
    assert len(list(hub.records("g"))) == 1


def test_a_request_over_the_limit_is_told_and_not_read(start_hub):
    hub = start_hub(max_frame_bytes="64KiB", queue_bytes="1MiB")
    with raw(hub) as peer:
        peer.sendall(b"POST /dataproxy/message HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 300_000)
        peer.shutdown(socket.SHUT_WR)
        assert read_all(peer).startswith(b"HTTP/1.1 413 ")
    assert hub.stats()["frame_bytes"] <= 1 << 20
    assert post(hub) == (0, "Ok")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_clients_get_an_answer_or_the_end(name, start_hub):
    hub = start_hub(read_idle=0.2)
    assert run(HOSTILE[name], ("127.0.0.1", hub.http_port)) in (CLOSED, 200, 413)
    assert post(hub) == (0, "Ok")
    assert hub.stats()["frame_bytes"] == 0


def test_half_sent_requests_share_the_budget_with_half_sent_frames(start_hub):
    hub = start_hub(queue_bytes="1MiB", max_frame_bytes="512KiB")
    head = b"POST /dataproxy/message HTTP/1.1\r\nContent-Length: 500000\r\n\r\n"
    peers = [raw(hub) for _ in range(12)]
    for peer in peers:
        peer.sendall(head + b"x" * 250_000)
    wait_until(lambda: hub.stats()["closed"]["memory"] >= 6)
    assert hub.stats()["frame_bytes"] <= 1 << 20
    for peer in peers:
        peer.close()
    assert post(hub) == (0, "Ok")


@pytest.mark.parametrize(
    "others",
    [{}, {"rocketmq_port": 0}, {"rocketmq_port": 0, "tubemq_port": 0, "nodes": 3}],
    ids=["alone", "one", "all"],
)
def test_a_hub_without_the_report(start_hub, others):
    hub = start_hub(http_port=-1, **others)
    assert hub.http_port == -1
    assert [node.http for node in hub.nodes] == [None] * others.get("nodes", 1)
    assert sum((node.listeners for node in hub.nodes), ()) == hub.listeners
    with pytest.raises(HubError, match="no port for HTTP reports"):
        hub.http_target  # noqa: B018


def test_a_taken_port_is_named(start_hub):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(HubError, match=f"the port of the HTTP report cannot listen on 127.0.0.1:{port}"):
            start_hub(http_port=port)
    with pytest.raises(ConfigError, match=r"http_port \(65535\) and nodes \(2\)"):
        start_hub(http_port=65535, nodes=2)


HTTP = 1  # the listener of a hub with one node


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("refuse", {"code": 119}, (119, "")),
        ("queue_full", {}, (114, "Put msg event to channel failure: the queue is full")),
        ("stopped", {}, (2, "Service closed")),
        ("not_ready", {}, (1, "Service sink not ready")),
        ("slice", {}, (0, "Ok")),
        ("delay", {"seconds": 0.01}, (0, "Ok")),
        ("foreign_id", {}, (0, "Ok")),
    ],
)
def test_faults_of_answers(hub, kind, options, expected):
    with hub.faults.add(kind, listener=HTTP, **options):
        assert post(hub) == expected
    assert post(hub) == (0, "Ok")


@pytest.mark.parametrize(
    ("kind", "options", "stored"),
    [
        ("close", {"stage": "before_store"}, 0),
        ("close", {"stage": "after_store"}, 1),
        ("reset", {"stage": "after_store"}, 1),
        ("close", {"on": "connect"}, 0),
        ("close", {"on": "bytes", "at_byte": 40}, 0),
    ],
)
def test_faults_that_end_connections(hub, kind, options, stored):
    with hub.faults.add(kind, listener=HTTP, **options), pytest.raises(urllib3.exceptions.HTTPError):
        post(hub)
    assert len(list(hub.records("g"))) == stored
    assert post(hub) == (0, "Ok")


def test_a_silent_hub_has_stored_what_it_does_not_answer(hub):
    with hub.faults.add("drop_reply", listener=HTTP, group="g") as fault, raw(hub) as peer:
        peer.sendall(report.build("POST", PATH, b"groupId=g&streamId=s&body=x", FORM))
        fault.wait(1)
        wait_until(lambda: len(list(hub.records("g"))) == 1)
        peer.settimeout(0.05)
        with pytest.raises(TimeoutError):
            peer.recv(1)


def test_more_answers_than_asked_for(hub):
    data = report.build("GET", "/dataproxy/heartbeat", headers={"Connection": "close"})
    with hub.faults.add("duplicate", on="heartbeat", copies=3, listener=HTTP), raw(hub) as peer:
        peer.sendall(data)
        assert read_all(peer).count(b"HTTP/1.1 200") == 3
    with hub.faults.add("garbage", on="heartbeat", data=b"?!", listener=HTTP), raw(hub) as peer:
        peer.sendall(data)
        assert read_all(peer).startswith(b"?!HTTP/1.1 200")


def test_a_killed_report_port_leaves_tcp_alone(hub):
    with raw(hub) as peer, raw(hub, hub.port) as frames:
        hub.nodes[0].http.kill()
        assert read_all(peer) == b""
        with pytest.raises(ConnectionRefusedError):
            raw(hub)
        frames.sendall(b"\0\0\0\1\1")
        assert frames.recv(5) == b"\0\0\0\1\1"
    hub.nodes[0].http.restart()
    assert post(hub) == (0, "Ok")


def test_what_was_accepted_is_answered_when_the_hub_ends(start_hub):
    hub = start_hub()
    with hub.faults.add("delay", seconds=0.05), raw(hub) as peer:
        peer.sendall(report.build("POST", PATH, b"groupId=g&streamId=s&body=x", FORM))
        wait_until(lambda: hub.stats()["entries"] == 1)
        hub.close()
        assert b'"code":"0"' in read_all(peer)


def test_a_report_that_ends_its_connection_ends_no_other(start_hub, vectors):
    hub = start_hub(threads=1)  # a loop keeps what it reads of a request from one to the next, of whatever protocol
    (pack,) = (vector for vector in vectors["v1"] if vector["name"] == "v1_pack_none")
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as other:
        for _ in range(3):
            with raw(hub) as connection:
                connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
                assert b"\r\n\r\n" in read_all(connection)
            other.sendall(bytes.fromhex(pack["hex"]))
            assert other.recv(100)
    assert len(list(hub.records("test_group"))) == 6
