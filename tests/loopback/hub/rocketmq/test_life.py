"""The port of RocketMQ in the life of a hub: what clients do there, kills, forks, options, TLS, the command."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataproxy import Producer
from dataproxy.errors import ConfigError, ForkedError, HubError
from dataproxy.hub import Hub
from dataproxy.wire.rocketmq.bodies import ConsumerIds, Route
from dataproxy.wire.rocketmq.codes import Code
from tests.native import probe_rocketmq as wire
from tests.support.certificates import Authority
from tests.support.remoting import Remote, fields, properties
from tests.support.waiting import SECONDS

ROOT = Path(__file__).parents[4]
MAIN = "from dataproxy.cli.main import main; main()"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


def asked(remote: Remote, code: int, body: bytes = b"", **given: object) -> dict:
    """Return the answer to a request."""
    return wire.read(remote.answer(remote.request(code, body, **{name: str(value) for name, value in given.items()})))


def pulled(remote: Remote, topic: str, queue: int = 0, **given: object) -> list[dict]:
    """Wait for messages of a queue."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found = remote.pull(topic, queueId=queue, sysFlag=6, suspendTimeoutMillis=500, **given)
        if found["found"]:
            return found["found"]
    return []


def test_a_topic_begins_with_a_message_and_has_a_route_then(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        sent = remote.send("T", b"first", queueId=2)
        assert (sent["code"], sent["queueId"], sent["queueOffset"]) == (0, 2, 0)
        assert remote.send("T", b"second", queueId=2)["queueOffset"] == 1
        route = Route.read(asked(remote, Code.GET_ROUTEINFO_BY_TOPIC, topic="T")["body"])
        assert route.broker_datas[0].broker_addrs == {0: f"127.0.0.1:{hub.rocketmq_port}"}
        assert [one["body"] for one in pulled(remote, "T", 2)] == [b"first", b"second"]
    assert [record.body for record in hub.records("T")] == [b"first", b"second"]


def test_what_a_producer_of_dataproxy_sends_is_read_within_a_second_or_two(hub: Hub) -> None:
    with Producer(hub.target, group_id="clicks") as producer:
        producer.send("view", b"body").result(SECONDS)
    with Remote(hub.rocketmq_port) as remote:
        until = time.monotonic() + SECONDS
        while asked(remote, Code.GET_ROUTEINFO_BY_TOPIC, topic="clicks")["code"] and time.monotonic() < until:
            time.sleep(0.1)
        [message] = pulled(remote, "clicks")
        assert b"body" in message["body"]


def test_a_filter_of_sql_wakes_when_a_message_comes(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote, Remote(hub.rocketmq_port) as other:
        remote.send("T", b"no", properties=properties(number="1"))
        wish = {"sysFlag": 6, "suspendTimeoutMillis": 20_000, "subscription": b"number > 4", "expressionType": b"SQL92"}
        assert remote.pull("T", **wish)["code"] == 20
        number = remote.ask("T", queueOffset=1, **wish)
        other.send("T", b"yes", properties=properties(number="7"))
        found = wire.take("pulled", remote.answer(number))
        assert [one["body"] for one in wire.read_stored_messages(found["messages"])] == [b"yes"]
        code = wire.take("pulled", remote.answer(remote.ask("T", **{**wish, "subscription": b"number >"})))["code"]
        assert code == 23


def test_members_hear_of_each_other_and_of_a_connection_that_ends(hub: Hub) -> None:
    def beat(remote: Remote, name: str) -> None:
        body = {"clientID": name, "producerDataSet": [], "consumerDataSet": [{
            "groupName": "g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False,
            "subscriptionDataSet": [{"topic": "T", "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1}],
        }]}  # fmt: skip
        assert asked(remote, Code.HEART_BEAT, json.dumps(body).encode())["code"] == 0

    with Remote(hub.rocketmq_port) as first:
        beat(first, "a")
        assert wire.read(first.hear())["code"] == Code.NOTIFY_CONSUMER_IDS_CHANGED
        with Remote(hub.rocketmq_port) as second:
            beat(second, "b")
            first.hear()
            found = ConsumerIds.read(asked(first, Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g")["body"])
            assert found.consumer_id_list == ("a", "b")
        first.hear()
        found = ConsumerIds.read(asked(first, Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g")["body"])
        assert found.consumer_id_list == ("a",)


def test_codes_that_nobody_knows_are_answered(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        assert asked(remote, 999)["code"] == 3
        remote.request(998, oneway=True)
        assert asked(remote, 997)["code"] == 3
        assert remote.answers == {}


def start(store: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a hub in a process of its own, and return its port of RocketMQ."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "hub", "--store", str(store), "--port", "0", "--http-port", "-1",
         "--manager-port", "0", "--rocketmq", "0", "--print-urls"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    return process, int(json.loads(process.stdout.readline())["rocketmq_target"].rpartition(":")[2])


def test_a_killed_hub_has_what_was_for_later_and_what_was_committed(tmp_path: Path) -> None:
    process, port = start(tmp_path / "store")
    try:
        with Remote(port) as remote:
            remote.send("T", b"plain", queueId=0)
            assert remote.send("T", b"later", properties=properties(DELAY="2"))["code"] == 0
            half = remote.send("T", b"half", properties=properties(TRAN_MSG="true", PGROUP="pg", UNIQ_KEY="U"))
            asked(remote, Code.UPDATE_CONSUMER_OFFSET, consumerGroup="g", topic="T", queueId=0, commitOffset=1)
            answer = asked(remote, Code.QUERY_CONSUMER_OFFSET, consumerGroup="g", topic="T", queueId=0)
            assert answer["fields"] == [(b"offset", b"1")]
            remote.send("T", b"behind", queueId=1)  # what is stored in front of it is on disk, too
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)
    process, port = start(tmp_path / "store")
    try:
        with Remote(port) as remote:
            answer = asked(remote, Code.QUERY_CONSUMER_OFFSET, consumerGroup="g", topic="T", queueId=0)
            assert answer["fields"] == [(b"offset", b"1")]
            handle = int(half["msgId"][16:], 16)
            remote.request(
                Code.END_TRANSACTION, oneway=True, producerGroup="pg", msgId="U", commitOrRollback="8",
                tranStateTableOffset=str(half["queueOffset"]), commitLogOffset=str(handle),
            )  # fmt: skip
            found: list[bytes] = []
            while len(found) < 2:
                found += [one["body"] for one in pulled(remote, "T", queueOffset=1 + len(found))]
            assert sorted(found) == [b"half", b"later"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0


def test_the_command_and_its_port(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "hub", "--memory", "--port", "0", "--manager-port", "0", "--rocketmq", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stderr is not None
    process.stderr.readline()
    line = process.stderr.readline()
    assert line.startswith("hub: RocketMQ rocketmq://127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0


def test_a_child_gets_an_error_and_a_hub_that_closes_ends_its_thread(hub: Hub) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert hub._rocketmq is not None
            hub._rocketmq.run(lambda: None)
        except ForkedError:
            hub.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Remote(hub.rocketmq_port) as remote:
        assert remote.send("T", b"x")["code"] == 0
    running = {one for one in threading.enumerate() if one.name == "dataproxy-hub-rocketmq"}  # other hubs' among them
    hub.close()
    assert len(running & set(threading.enumerate())) < len(running)


def test_hubs_come_and_go_on_one_port_with_the_second_one_below() -> None:
    with Hub(rocketmq_port=0) as hub:
        port = hub.rocketmq_port
    with Hub(rocketmq_port=port, rocketmq_vip=True) as hub:
        assert hub.rocketmq_port == port
        with Remote(port - 2) as remote:
            assert remote.send("T", b"x")["code"] == 0
        with Remote(port) as remote:
            assert [one["body"] for one in pulled(remote, "T")] == [b"x"]


def test_it_speaks_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.identity()
    with Hub(rocketmq_port=0, tls_certificate=str(identity.certificate), tls_key=str(identity.key)) as hub:
        assert hub.rocketmq_target.startswith("rocketmqs://127.0.0.1:")
        with Remote(hub.rocketmq_port) as remote:
            context = ssl.create_default_context(cafile=str(authority.ca))
            remote.socket = context.wrap_socket(remote.socket, server_hostname="127.0.0.1")
            assert remote.send("T", b"x")["code"] == 0


def test_beside_the_port_of_tubemq() -> None:
    with Hub(rocketmq_port=0, tubemq_port=0) as hub:
        with Producer(hub.tubemq_target) as producer:
            producer.send("one", b"from TubeMQ").result(SECONDS)
        with Remote(hub.rocketmq_port) as remote:
            until = time.monotonic() + SECONDS
            while asked(remote, Code.GET_ROUTEINFO_BY_TOPIC, topic="one")["code"] and time.monotonic() < until:
                time.sleep(0.1)
            assert [one["body"] for one in pulled(remote, "one")] == [b"from TubeMQ"]
        assert hub.stats()["rocketmq"]["calls"] > 0
        assert hub.listeners[0].protocol == "tcp"
        assert hub.rocketmq_listener is not None
        assert hub.rocketmq_listener.to_json()["protocol"] == "rocketmq"


def test_a_hub_without_the_port() -> None:
    with Hub() as hub:
        assert (hub.rocketmq_port, hub.rocketmq_listener) == (-1, None)
        with pytest.raises(HubError, match="rocketmq_port=0"):
            _ = hub.rocketmq_target


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rocketmq_vip": True}, "rocketmq_vip is given without"),
        ({"rocketmq_port": 0, "rocketmq_vip": True}, "rocketmq_vip is given without"),
        ({"rocketmq_port": 0, "secret_id": "u", "secret_key": "k"}, "not asked for credentials"),
        ({"rocketmq_port": 70_000}, "rocketmq_port"),
    ],
)
def test_options_that_do_not_go_together(options: dict, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Hub(**options)


def test_the_address_of_a_hub_on_all_addresses(start_hub: Callable[..., Hub]) -> None:
    hub = start_hub(rocketmq_port=0, host="0.0.0.0", insecure=True)
    with Remote(hub.rocketmq_port) as remote:
        route = Route.read(asked(remote, Code.GET_ROUTEINFO_BY_TOPIC, topic="TBW102")["body"])
        assert route.broker_datas[0].broker_addrs == {0: f"127.0.0.1:{hub.rocketmq_port}"}
    hub = start_hub(rocketmq_port=0, host="0.0.0.0", insecure=True, node_ip="192.0.2.7")
    with Remote(hub.rocketmq_port) as remote:
        route = Route.read(asked(remote, Code.GET_ROUTEINFO_BY_TOPIC, topic="TBW102")["body"])
        assert route.broker_datas[0].broker_addrs == {0: f"192.0.2.7:{hub.rocketmq_port}"}
        assert fields(remote.answer(remote.post("T", b"x")))["msgId"].startswith("7F000001")
