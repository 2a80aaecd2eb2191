"""The operator's view of a hub with clients of three protocols: over HTTP, by commands, and for Prometheus."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from typer.testing import CliRunner, Result

from dataproxy import Producer
from dataproxy.cli.app import app
from dataproxy.hub import Hub
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.queues import read_offsets
from tests.native import probe_rocketmq as wire
from tests.support.rawclient import Connection, Reader, Sender, bodies
from tests.support.remoting import Port, Remote
from tests.support.rocketclients import heartbeat
from tests.support.waiting import SECONDS, eventually


class Site:
    """A hub with a producer of DataProxy, a consumer of TubeMQ and a client of RocketMQ, which has three messages."""

    def __init__(self, hub: Hub, connection: Connection, reader: Reader, remote: Remote, producer: Producer) -> None:
        self.hub, self.connection, self.reader, self.remote, self.producer = hub, connection, reader, remote, producer

    def beat(self) -> None:
        """Let all clients say that they are there, and the threads of their protocols look after them."""
        who = {"clientId": self.reader.client, "groupName": "tubes"}
        assert self.connection.ask("HeartRequestC2M", **who, reportSubscribeInfo=False).errCode == 200
        assert self.connection.ask("HeartBeatRequestC2B", readStatus=0, **self.reader.heartbeat()).errCode == 200
        call(self.remote, Code.HEART_BEAT, heartbeat("c1@7", {"rockets": ["T"]}, ["pg"]))
        for service in 2 * (self.hub._rocketmq, self.hub._tubemq):
            assert service is not None
            service.run(lambda: None)

    def ask(self, method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, Any]:
        """Make one request and return status and answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.hub.manager_port, timeout=30)
        sent = {"Content-Type": "application/json"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, body=data, headers=sent)
        answer = connection.getresponse()
        found = answer.read()
        connection.close()
        return answer.status, json.loads(found) if found.startswith(b"{") else found.decode()

    def show(self, what: str, **fields: object) -> dict[str, Any]:
        """Return a page that has to be there."""
        status, found = self.ask("GET", f"/hub/{what}?{urlencode(fields)}")
        assert status == 200, found
        return found

    def rows(self, what: str, limit: int = 100) -> list[dict[str, Any]]:
        """Return the rows of all pages."""
        rows, start = [], ""
        while start is not None:
            page = self.show(what, start=start, limit=limit)
            rows += page[what]
            start = page["next"]
        return rows

    def reset(self, **body: object) -> dict[str, Any]:
        """Ask for a reset that has to work."""
        status, found = self.ask("POST", "/hub/offsets", body, token=self.hub.token)
        assert status == 200, found
        return found

    def refused(self, status: int, text: str, **body: object) -> None:
        """Ask for a reset that has to be refused."""
        before = self.show("groups")["groups"]
        answer = self.ask("POST", "/hub/offsets", body, token=self.hub.token)
        assert (answer[0], text in answer[1]["errMsg"]) == (status, True), answer
        assert self.show("groups")["groups"] == before

    def command(self, *words: object) -> Result:
        """Run a command against the hub."""
        return CliRunner().invoke(
            app, [*map(str, words), "--hub", self.hub.manager_url], env={"COLUMNS": "250", "NO_COLOR": "1"}
        )

    def told(self, *words: object) -> Any:
        """Return what a command prints as JSON."""
        result = self.command(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


def call(remote: Remote, code: int, body: bytes = b"", **given: object) -> dict[str, Any]:
    """Return the answer to a request."""
    return wire.read(remote.answer(remote.request(code, body, **{name: str(value) for name, value in given.items()})))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with (
        Hub(tubemq_port=0, rocketmq_port=0) as hub,
        Connection(hub.tubemq_port) as connection,
        Remote(hub.rocketmq_port) as remote,
        Producer(hub.target, group_id="b_app", connections=1) as producer,
    ):
        monkeypatch.setenv("DATAPROXY_HUB_TOKEN", hub.token)
        for i in range(3):
            producer.send("s_click", b"%d" % i)
        producer.flush()
        sender = Sender(connection, connection, "demo")
        for i in range(5):
            sender.send(0, b"%d" % i)
        reader = Reader(connection, "demo", "tubes")
        connection.ask("RegisterRequestC2M", clientId=reader.client, groupName="tubes", hostName="h",
                       topicList=["demo"])  # fmt: skip
        assert reader.register().errCode == 200
        assert len(bodies(reader.get())) == 5
        for i in range(4):
            assert remote.send("T", b"%d" % i, queueId=0)["code"] == 0
        assert call(remote, Code.HEART_BEAT, heartbeat("c1@7", {"rockets": ["T"]}, ["pg"]))["code"] == 0
        update = {"consumerGroup": "rockets", "topic": "T", "queueId": 0, "commitOffset": 1}
        assert call(remote, Code.UPDATE_CONSUMER_OFFSET, **update)["code"] == 0
        yield Site(hub, connection, reader, remote, producer)


# --- what there is


def test_clients_of_all_protocols(site: Site) -> None:
    rows = site.rows("clients")
    assert [(row["protocol"], row["role"], row["group"]) for row in rows] == [
        ("dataproxy", "producer", "b_app"), ("rocketmq", "consumer", "rockets"), ("rocketmq", "producer", "pg"),
        ("tubemq", "consumer", "tubes"), ("tubemq", "producer", ""),
    ]  # fmt: skip
    sends, consumes, _, reads, _ = rows
    assert (sends["messages"], sends["streams"]) == (3, [{"group": "b_app", "stream": "s_click"}])
    assert sends["address"].startswith("127.0.0.1:")
    assert (consumes["client"], consumes["language"], consumes["version"]) == ("c1@7", "JAVA", "V4_9_7")
    assert (consumes["lag"], consumes["state"]) == (3, "reading")
    assert (reads["client"], reads["queues"], reads["lag"]) == (site.reader.client, 1, 5)
    assert all(row["silent_s"] >= 0 for row in rows)


def test_pages_have_every_row_once(site: Site) -> None:
    names = ("protocol", "role", "group", "client", "address")
    all_, one_by_one = ([[row[name] for name in names] for row in site.rows("clients", limit)] for limit in (100, 1))
    assert one_by_one == all_
    assert [row["group"] for row in site.rows("groups", limit=1)] == ["rockets", "tubes"]


def test_groups_with_their_members(site: Site) -> None:
    rockets, tubes = site.rows("groups")
    assert (rockets["protocol"], rockets["kind"], rockets["topics"], rockets["lag"]) == (
        "rocketmq",
        "sharing",
        ["T"],
        3,
    )
    (member,) = rockets["members"]
    assert (member["client"], member["lag"], member["state"]) == ("c1@7", 3, "reading")
    assert {"topic": "T", "partition": 0} in member["holds"]
    assert (tubes["protocol"], tubes["kind"], tubes["topics"], tubes["lag"]) == ("tubemq", "divided", ["demo"], 5)
    assert [one["client"] for one in tubes["members"]] == [site.reader.client]
    assert [row["group"] for row in site.show("groups", group="tubes")["groups"]] == ["tubes"]


def test_locks_and_transactions(site: Site) -> None:
    queue = {"brokerName": "dataproxy", "queueId": 0, "topic": "T"}
    wanted = msgspec.json.encode({"clientId": "c1@7", "consumerGroup": "rockets", "mqSet": [queue]})
    assert call(site.remote, Code.LOCK_BATCH_MQ, wanted)["code"] == 0
    (lock,) = site.rows("locks")
    assert (lock["group"], lock["topic"], lock["queue"], lock["client"], lock["orphan"]) == (
        "rockets", "T", 0, "c1@7", False,
    )  # fmt: skip
    half = b"TRAN_MSG\x01true\x02PGROUP\x01pg"
    assert site.remote.send("T", b"half", properties=half, sysFlag=4)["code"] == 0
    (open_one,) = site.rows("transactions")
    assert (open_one["group"], open_one["checks"]) == ("pg", 0)
    for words in (("locks",), ("transactions",)):
        result = site.command(*words)
        assert result.exit_code == 0, result.output
        assert ("rockets" if words == ("locks",) else "pg") in result.stdout


def test_a_producer_that_closes_is_removed_and_told(site: Site) -> None:
    site.producer.close()
    assert eventually(lambda: [row["protocol"] for row in site.rows("clients")].count("dataproxy") == 0)
    gone = [one for one in site.show("events")["events"] if (one["event"], one["protocol"]) == ("gone", "dataproxy")]
    assert [(one["group"], one["why"]) for one in gone] == [("b_app", "its connection ended")]


def test_events_tell_who_came_and_what_was_reset(site: Site) -> None:
    site.reset(group="rockets", topic="T", to="first", execute=True)
    site.reset(group="tubes", to="first", execute=True)
    found = site.show("events")
    came = {(one["protocol"], one["role"]) for one in found["events"] if one["event"] == "came"}
    assert came == {("dataproxy", "producer"), ("rocketmq", "producer"), ("rocketmq", "consumer"),
                    ("tubemq", "producer"), ("tubemq", "consumer")}  # fmt: skip
    resets = [(one["protocol"], one["group"], one["topic"]) for one in found["events"] if one["event"] == "reset"]
    assert resets == [("rocketmq", "rockets", "T"), ("tubemq", "tubes", "demo")]
    assert found["missed"] == 0
    assert site.show("events", after=found["next"])["events"] == []
    assert [one["number"] for one in site.show("events", after=1, limit=2)["events"]] == [2, 3]


def test_metrics(site: Site) -> None:
    _, text = site.ask("GET", "/metrics")
    for line in (
        'dataproxy_hub_clients{protocol="dataproxy"} 1', 'dataproxy_hub_clients{protocol="tubemq"} 2',
        'dataproxy_hub_clients{protocol="rocketmq"} 2', 'dataproxy_hub_groups{protocol="rocketmq"} 1',
        'dataproxy_hub_groups{protocol="tubemq"} 1', "dataproxy_hub_locks 0", "dataproxy_hub_transactions 0",
        "dataproxy_hub_idle_members 0", 'dataproxy_hub_client_ends_total{reason="silent"} 0',
        'dataproxy_hub_events_total{event="reset"} 0',
    ):  # fmt: skip
        assert line in text.splitlines()


# --- offsets


def test_a_dry_run_changes_nothing_and_a_reset_does_what_it_has_shown(site: Site) -> None:
    shown = site.reset(group="rockets", topic="T", partition=0, to=3)
    assert shown == {
        "group": "rockets", "protocol": "rocketmq", "executed": False,
        "offsets": [{"topic": "T", "partition": 0, "member": "c1@7", "before": 1, "after": 3}],
    }  # fmt: skip
    assert site.show("groups", group="rockets")["groups"][0]["lag"] == 3
    assert site.reset(group="rockets", topic="T", partition=0, to=3, execute=True) == {**shown, "executed": True}
    assert site.show("groups", group="rockets")["groups"][0]["lag"] == 1
    told = wire.read(site.remote.hear())
    while told["code"] != Code.RESET_CONSUMER_CLIENT_OFFSET:
        told = wire.read(site.remote.hear())
    assert {queue.queue_id: offset for queue, offset in read_offsets(told["body"]).items()} == {0: 3}
    late = {"consumerGroup": "rockets", "topic": "T", "queueId": 0, "commitOffset": 2}
    call(site.remote, Code.UPDATE_CONSUMER_OFFSET, **late)
    assert site.show("groups", group="rockets")["groups"][0]["lag"] == 1


def test_a_group_of_tubemq_is_reset_in_messages(site: Site) -> None:
    found = site.reset(group="tubes", topic="demo", partition=0, to=4, execute=True)
    assert [(row["before"], row["after"]) for row in found["offsets"]] == [(0, 4)]
    assert site.show("groups", group="tubes")["groups"][0]["lag"] == 1


def test_a_reset_by_time(site: Site) -> None:
    assert {row["after"] for row in site.reset(group="tubes", to="@0")["offsets"]} == {0}
    assert {row["after"] for row in site.reset(group="tubes", to="@9999999999999")["offsets"]} == {5}


def test_wrong_resets_change_nothing(site: Site) -> None:
    site.refused(404, "there is no group 'nobody'", group="nobody", to="first", execute=True)
    site.refused(400, "is no name of a group", group="a,b", to="first", execute=True)
    site.refused(404, "there is no topic 'X'", group="rockets", topic="X", to="first", execute=True)
    site.refused(404, "has no partition 99", group="rockets", topic="T", partition=99, to="first", execute=True)
    site.refused(400, "offset 5 is not in partition 0", group="rockets", topic="T", partition=0, to=5, execute=True)
    site.refused(400, "is no place", group="rockets", topic="T", to="last", execute=True)
    site.refused(400, "protocol='kafka'", group="rockets", topic="T", to="first", protocol="kafka", execute=True)
    site.refused(400, "execute=1", group="rockets", to="first", execute=1)
    site.refused(400, "partition=-1", group="rockets", topic="T", partition=-1, to="first")
    site.refused(400, "is not that of this request", group="rockets", to="first", force=True)
    status, answer = site.ask("POST", "/hub/offsets", b"{", token=site.hub.token)
    assert (status, "not JSON" in answer["errMsg"]) == (400, True)


def test_changes_need_the_token_and_reading_does_not(site: Site) -> None:
    for token in (None, "wrong"):
        status, answer = site.ask("POST", "/hub/offsets", {"group": "tubes", "to": "first"}, token=token)
        assert status == 403
        assert "token" in answer["errMsg"]
    for what in ("clients", "groups", "locks", "transactions", "events"):
        site.show(what)


def test_what_no_page_can_be(site: Site) -> None:
    for path in ("clients?start=x", "groups?limit=0", "groups?limit=1001", "events?after=-1", "locks?start=[1]"):
        status, answer = site.ask("GET", f"/hub/{path}")
        assert status == 400, answer
    assert site.ask("GET", "/hub/groups?group=nobody")[0] == 404


# --- commands


def test_commands_print_tables_and_json(site: Site) -> None:
    for words, shown in (
        (("clients",), ["dataproxy", "c1@7", site.reader.client, "b_app/s_click"]),
        (("groups",), ["rockets", "tubes", "divided"]),
        (("groups", "rockets"), ["c1@7", "group rockets of rocketmq"]),
        (("offsets", "reset", "tubes", "--to", "first", "--dry-run"), ["demo", "nothing is changed"]),
        (("events",), ["came: protocol=rocketmq role=consumer client=c1@7"]),
    ):
        result = site.command(*words)
        assert result.exit_code == 0, result.output
        for text in shown:
            assert text in result.stdout, result.stdout
    assert len(site.told("clients")["clients"]) == 5
    assert [row["protocol"] for row in site.told("clients", "--protocol", "tubemq")["clients"]] == 2 * ["tubemq"]
    assert [row["group"] for row in site.told("groups")["groups"]] == ["rockets", "tubes"]
    assert site.told("locks") == {"locks": []}
    assert site.told("transactions") == {"transactions": []}
    assert site.told("offsets", "reset", "tubes", "--to", "next")["executed"] is True


def test_commands_say_what_is_wrong(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for words, text in (
        (("groups", "nobody"), "no group 'nobody'"),
        (("offsets", "reset", "rockets", "--topic", "T", "--partition", "0", "--to", "5"), "offset 5 is not in"),
        (("offsets", "reset", "a,b", "--to", "first"), "is no name of a group"),
    ):
        result = site.command(*words)
        assert result.exit_code != 0
        assert text in result.output
    monkeypatch.delenv("DATAPROXY_HUB_TOKEN")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    result = site.command("offsets", "reset", "tubes", "--to", "first")
    assert result.exit_code != 0
    assert "token" in result.output


# --- bounds, restarts, alarms


def test_the_names_of_streams_have_a_bound(site: Site) -> None:
    for i in range(20):
        site.producer.send(f"s{i}", b"x", group_id="b_app")
    site.producer.flush()
    (row,) = [row for row in site.rows("clients") if row["protocol"] == "dataproxy"]
    assert (row["messages"], len(row["streams"])) == (23, 8)
    assert row["requests_of_others"] == 13


def test_connections_that_have_ended_and_that_nobody_asked_about_have_a_bound() -> None:
    with contextlib.closing(Port(max_connections=5000)) as port:
        for _ in range(1100):
            socket.create_connection(("127.0.0.1", port.core.port)).close()
        assert eventually(lambda: port.core.stats()["closed"]["peer"] == 1100)
        there, ended, forgotten = port.core.producers()
        assert (there, len(ended), forgotten) == ([], 1024, 76)
        assert {row[9] for row in ended} == {"peer"}
        assert len({row[0] for row in ended}) == 1024
        assert port.core.producers() == ([], [], 0)


def test_a_reset_holds_behind_a_restart_of_a_durable_hub(tmp_path: Path) -> None:
    store, body = tmp_path / "store", heartbeat("c1@7", {"g": ["T"]})
    commit = {"consumerGroup": "g", "topic": "T", "queueId": 0}
    with Hub(store, rocketmq_port=0) as hub, Remote(hub.rocketmq_port) as remote:
        for i in range(4):
            assert remote.send("T", b"%d" % i, queueId=0)["code"] == 0
        call(remote, Code.HEART_BEAT, body)
        call(remote, Code.UPDATE_CONSUMER_OFFSET, **commit, commitOffset=2)
        hub._overview.reset("g", "T", None, "first", "", execute=True)
    with Hub(store, rocketmq_port=0) as hub, Remote(hub.rocketmq_port) as remote:
        call(remote, Code.HEART_BEAT, body)
        told = wire.read(remote.hear())
        while told["code"] != Code.RESET_CONSUMER_CLIENT_OFFSET:
            told = wire.read(remote.hear())
        call(remote, Code.UPDATE_CONSUMER_OFFSET, **commit, commitOffset=3)  # of before the reset
        asked = {"consumerGroup": "g", "topic": "T", "queueId": 0}
        assert wire_fields(call(remote, Code.QUERY_CONSUMER_OFFSET, **asked))["offset"] == "0"
        call(remote, Code.UPDATE_CONSUMER_OFFSET, **commit, commitOffset=1)
        assert wire_fields(call(remote, Code.QUERY_CONSUMER_OFFSET, **asked))["offset"] == "1"


def wire_fields(answer: dict[str, Any]) -> dict[str, str]:
    """Return the fields of an answer's header."""
    return {name.decode(): value.decode() for name, value in answer["fields"] or ()}


def test_members_that_hold_queues_and_do_not_ask_are_an_alarm(site: Site) -> None:
    hub = site.hub

    def idle() -> set[tuple[str, str]]:
        return {(one["protocol"], one["group"]) for one in site.show("events")["events"] if one["event"] == "idle"}

    for _ in range(5):
        hub._core.advance_clock(25.0)
        site.beat()
    assert eventually(lambda: idle() == {("rocketmq", "rockets"), ("tubemq", "tubes")})
    states = {row["group"]: row["state"] for row in site.rows("clients") if row["role"] == "consumer"}
    assert states == {"rockets": "idle", "tubes": "idle"}
    assert [row["idle"] for row in site.rows("groups")] == [1, 1]
    assert "dataproxy_hub_idle_members 2" in site.ask("GET", "/metrics")[1].splitlines()
    assert site.remote.pull("T", consumerGroup=b"rockets")["code"] == 0
    hub._core.advance_clock(11.0)
    assert eventually(lambda: [one["group"] for one in site.show("events")["events"] if one["event"] == "pulls again"])


# --- readers of events


def test_a_reader_that_is_too_slow_is_told_how_many_events_are_missing(site: Site) -> None:
    last = site.show("events", limit=1000)["next"]
    for _ in range(5000):
        site.hub._events.add("reset", protocol="tubemq", group="g")
    missed = last + 5000 - 4096 - 1
    assert site.show("events", after=1, limit=1)["missed"] == missed
    result = site.command("events", "--after", 1, "--json")
    assert result.exit_code == 0
    assert f"{missed:,} events are missing here" in result.stderr
    assert len(result.stdout.splitlines()) == 4096


def test_events_are_followed_until_the_reader_has_enough(site: Site) -> None:
    command = [sys.executable, "-m", "dataproxy", "events", "--follow", "--json", "--hub", site.hub.manager_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert json.loads(reader.stdout.readline())["event"] == "came"
        site.hub._events.add("reset", protocol="tubemq", group="later")
        found = next(one for line in reader.stdout if (one := json.loads(line))["event"] == "reset")
        assert found["group"] == "later"
        reader.send_signal(signal.SIGINT)
        assert reader.wait(SECONDS) == 130
