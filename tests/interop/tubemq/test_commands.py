"""``dataproxy topics`` and ``consume`` against TubeMQ's own master and broker."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from dataproxy.cli.app import app
from tests.support.rawclient import Connection, Sender
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.support.tubekit import Servers


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_topics(tubemq: Servers) -> None:
    target = f"tubemq://127.0.0.1:9,127.0.0.1:{tubemq.master}"
    assert eventually(lambda: call("topics", "one", "three", "-t", target).exit_code == 0)
    result = call("topics", "three", "one", "none", "-t", target, "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["master"], told["missing"]) == (f"127.0.0.1:{tubemq.master}", ["none"])
    assert [(topic["topic"], topic["partitions"]) for topic in told["topics"]] == [("three", 3), ("one", 1)]
    assert [(place["host"], place["port"]) for place in told["topics"][0]["brokers"]] == [("127.0.0.1", tubemq.broker)]


def test_consume(tubemq: Servers) -> None:
    target, group = f"tubemq://127.0.0.1:{tubemq.master}", f"cli_{time.time_ns()}"
    mark = f"{group}-".encode()
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        sender = Sender(master, broker, "three")
        for i in range(9):
            sender.send(i % 3, mark + b"%d" % i)
        sender.close()
    options = ("-g", group, "-t", target, "-o", "heartbeat_interval=1s", "--timeout", "3s")
    result = call("consume", "three", *options, "--format", "json")
    assert result.exit_code == 0, result.stderr
    bodies = [json.loads(line).get("body", "") for line in result.stdout.splitlines()]
    assert {body for body in bodies if body.startswith(group)} == {f"{group}-{i}" for i in range(9)}
    again = call("consume", "three", *options)  # everything was confirmed
    assert (again.exit_code, again.stdout) == (0, "")
