"""``dataproxy tubemq`` in this process, against a hub on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dataproxy.cli.app import app
from dataproxy.hub import Hub
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies

RULE = '[{"type":1,"rule":[{"zeroCnt":3,"freqInMs":100}]}]'


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub(tubemq_port=0, partitions=2) as running, Connection(running.tubemq_port) as connection:
        monkeypatch.setenv("DATAPROXY_HUB_TOKEN", running.token)
        sender = Sender(connection, connection, "demo")
        for i in range(3):
            sender.send(0, b"%d" % i)
        yield running


@pytest.fixture
def reader(hub: Hub) -> Iterator[Reader]:
    with Connection(hub.tubemq_port) as connection:
        reader = Reader(connection, "demo", "g")
        connection.ask("RegisterRequestC2M", clientId=reader.client, groupName="g", hostName="h", topicList=["demo"])
        reader.register()
        assert len(bodies(reader.get())) == 3
        yield reader


def run(hub: Hub, *words: object) -> Result:
    return CliRunner().invoke(
        app, ["tubemq", *map(str, words), "--hub", hub.manager_url], env={"COLUMNS": "200", "NO_COLOR": "1"}
    )


def told(hub: Hub, *words: object) -> dict:
    result = run(hub, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_tables(hub: Hub, reader: Reader) -> None:
    for words, shown in (
        (("topics",), ["demo", f"1 at 127.0.0.1:{hub.tubemq_port}"]),
        (("partitions", "demo"), [str(3 * INDEX)]),
        (("groups",), ["g", "divided", "demo"]),
        (("members", "g"), [reader.client, "127.0.0.1"]),
        (("offsets", "g", "--topic", "demo"), ["demo", str(3 * INDEX)]),
    ):
        result = run(hub, *words)
        assert result.exit_code == 0, result.output
        for text in shown:
            assert text in result.stdout, result.stdout


def test_json(hub: Hub, reader: Reader) -> None:
    assert [row["topic"] for row in told(hub, "topics")["topics"]] == ["demo"]
    assert told(hub, "partitions", "demo")["partitions"][0]["messages"] == 3
    assert told(hub, "groups")["groups"][0]["lag"] == 3
    assert told(hub, "members", "g")["members"][0]["member"] == reader.client
    assert told(hub, "offsets", "g")["offsets"][0]["unconfirmed"] == 3


def test_a_reset_needs_execute(hub: Hub, reader: Reader) -> None:
    shown = run(hub, "reset", "g", "--to", "next")
    assert shown.exit_code == 0 and "nothing is changed without --execute" in shown.stdout
    assert told(hub, "offsets", "g")["offsets"][0]["offset"] == 0
    assert told(hub, "reset", "g", "--to", INDEX, "--topic", "demo", "--partition", 0, "--execute")["executed"] is True
    assert told(hub, "offsets", "g")["offsets"][0]["offset"] == INDEX
    assert bodies(reader.get()) == [b"1", b"2"]


def test_rules(hub: Hub, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(RULE)
    for words, groups, cluster in (
        (("rules", "g", "--set", RULE), {"g": json.loads(RULE)}, None),
        (("rules", "--set", f"@{file}"), {"g": json.loads(RULE)}, json.loads(RULE)),
        (("rules", "x"), {"x": None}, json.loads(RULE)),
        (("rules", "g", "--delete"), {}, json.loads(RULE)),
        (("rules", "--delete"), {}, None),
        (("rules",), {}, None),
    ):
        result = run(hub, *words)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout) == {"cluster": cluster, "groups": groups}


def test_rights(hub: Hub) -> None:
    assert told(hub, "rights", "demo", "--control")["topics"][0]["controlled"] is True
    assert told(hub, "rights", "demo", "g", "--allow", "--items", "a,b")["topics"][0]["groups"] == [
        {"group": "g", "items": ["a", "b"]}
    ]
    assert "a,b" in run(hub, "rights").stdout
    assert told(hub, "rights", "demo", "g", "--deny")["topics"][0]["groups"] == []
    assert told(hub, "rights", "demo", "--open")["topics"] == []


def test_a_move(hub: Hub, reader: Reader) -> None:
    assert "goes to" in run(hub, "move", "g", "demo", 1, reader.client).stdout
    assert told(hub, "move", "g", "demo", 0, reader.client)["partition"] == 0


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("members", "nobody"), 1, "there is no group 'nobody'"),
        (("offsets", "nobody"), 1, "there is no group 'nobody'"),
        (("partitions", "a/b\x1b[1m"), 1, "there is no topic"),
        (("reset", "g", "--to", "end"), 1, "no place"),
        (("reset", "g"), 2, "--to"),
        (("rules", "--set", "x"), 1, "no JSON"),
        (("rules", "--set", "x", "--delete"), 2, "both given"),
        (("rules", "--set", "@/nowhere"), 2, "cannot be read"),
        (("rules", "--delete"), 1, "no flow rules"),
        (("rights", "demo"), 2, "neither"),
        (("rights", "demo", "g"), 2, "neither"),
        (("rights", "demo", "g", "--control"), 2, "neither"),
        (("move", "g", "demo", 0, "nobody"), 1, "has no member"),
    ],
)
def test_what_is_wrong_is_told(hub: Hub, reader: Reader, words: tuple[object, ...], code: int, text: str) -> None:
    result = run(hub, *words)
    assert result.exit_code == code, result.output
    assert text in result.output
    assert "\x1b[1m" not in result.output


def test_without_the_token(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DATAPROXY_HUB_TOKEN")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    result = run(hub, "rules", "--set", RULE)
    assert result.exit_code == 2 and "DATAPROXY_HUB_TOKEN" in result.output
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN", "wrong")
    result = run(hub, "rules", "--set", RULE)
    assert result.exit_code == 1 and "HTTP 403" in result.output
