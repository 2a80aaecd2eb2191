"""``send`` to a topic of TubeMQ, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataproxy.cli.app import app
from tests.support.tubeserver import TubeServer


@pytest.fixture
def server() -> Iterator[TubeServer]:
    with TubeServer({"orders": 2}) as running:
        yield running


def send(server: TubeServer, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["send", "-t", server.target, "-s", "orders", *arguments])
    return done.exit_code, done.output


def test_lines_become_messages(server: TubeServer, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"a\nb\nc\n")
    assert send(server, "--file", str(lines), "--attr", "$msgType$=new")[0] == 0
    found = server.stored("orders")
    assert sorted(one.body for one in found) == [b"a", b"b", b"c"]
    assert all(one.attributes == {"$msgType$": "new"} for one in found)


def test_a_group_is_refused(server: TubeServer, tmp_path: Path) -> None:
    code, text = send(server, "--group", "g", "--file", str(tmp_path / "lines"))
    assert code == 2
    assert "group_id has no meaning" in text.replace("\n", " ")
    assert server.stored("orders") == []


def test_a_topic_that_is_not_there_is_no_master_that_is_away(server: TubeServer, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"a\n")
    timeout = ("--delivery-timeout", "200ms")
    done = CliRunner().invoke(app, ["send", "-t", server.target, "-s", "nowhere", "--file", str(lines), *timeout])
    assert done.exit_code == 1
    server.stop_master()
    assert send(server, "--file", str(lines))[0] == 3


def test_a_misspelt_scheme_is_what_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["send", "-t", "tubmq://master:8715", "-s", "orders", "--file", "/dev/null"])
    assert done.exit_code == 2
    assert "did you mean tubemq://?" in done.output.replace("\n", " ")
