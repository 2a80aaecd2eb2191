"""Topics of a cluster, asked of a TubeMQ server in plain Python: fail-over, credentials, TLS, and broken answers."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dataproxy.cli.app import app
from dataproxy.config import load_consumer_config
from dataproxy.consumer.listing.topics import Listing, list_topics
from dataproxy.errors import DataProxyError, RemoteProtocolError, TransportError
from tests.support.certificates import Authority
from tests.support.tlsserver import tls_front
from tests.support.tubeserver import TubeServer

STANDBY = ("exception", "org.apache.inlong.tubemq.corerpc.exception.StandbyException", "not the leader\n\tat a.b.C")
PRODUCER_CALLS = ["RegisterRequestP2M", "HeartRequestP2M", "CloseRequestP2M"]


@pytest.fixture
def server() -> Iterator[TubeServer]:
    with TubeServer({"one": 1, "three": 3}) as running:
        yield running


def ask(target: str, topics: str = "one,three", **options: Any) -> Listing:
    return list_topics(load_consumer_config(target, None, topics, env={}, complete=False, **options))


def topics(target: str, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["topics", "-t", target, *arguments], env={"COLUMNS": "100"})


def test_what_a_master_says(server: TubeServer) -> None:
    found = ask(server.target, "three,none,one")
    assert found.master == f"127.0.0.1:{server.master_port}"
    assert [topic.name for topic in found.topics] == ["three", "one"]
    (place,) = found.topics[0].places
    assert (place.broker, place.host, place.port) == (1, "127.0.0.1", server.broker_port)
    assert (place.stores, place.partitions_per_store, place.partitions) == (1, 3, 3)
    assert (found.missing, found.largest, found.topics[0].largest) == (("none",), None, None)
    assert [call.method for call in server.calls] == PRODUCER_CALLS
    (client,) = {call.client for call in server.calls}
    assert re.fullmatch(r"[_A-Za-z0-9.\-]+", client)


def test_stores_limits_and_brokers_that_nobody_names(server: TubeServer) -> None:
    server.settings.max_body_bytes = 2_000_000

    def change(answer: Any) -> None:
        answer.topicInfos[:] = ["three#1:3:2,7:4:1#500000"]

    server.on("HeartRequestP2M", ("mangle", change))
    found = ask(server.target)
    assert found.largest == 2_000_000
    (topic,) = found.topics
    assert [(place.broker, place.host, place.partitions) for place in topic.places] == [(1, "127.0.0.1", 6), (7, "", 4)]
    assert topic.largest == 500_000


def test_masters_are_asked_in_their_order(server: TubeServer) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
        with TubeServer({"one": 2}) as standby:
            standby.on("RegisterRequestP2M", STANDBY, times=None)
            target = f"tubemq://{nobody},127.0.0.1:{standby.master_port},127.0.0.1:{server.master_port}"
            assert ask(target).master == f"127.0.0.1:{server.master_port}"
            server.stop_master()
            with pytest.raises(TransportError) as caught:
                ask(target)
    assert caught.value.code == "NO_MASTER"
    said = str(caught.value)
    assert f"{nobody}: Connection refused" in said
    assert "StandbyException: not the leader" in said
    assert "a.b.C" not in said


def test_a_master_that_does_not_answer(server: TubeServer) -> None:
    server.on("RegisterRequestP2M", "drop", times=None)
    with pytest.raises(TransportError, match="no answer in time"):
        ask(server.target, call_timeout=3.0)
    server.off()
    server.on("HeartRequestP2M", "close")
    with pytest.raises(TransportError, match="the connection ended before the answer"):
        ask(server.target)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "its answer begins with 48545450, expected ff7ff4fe"),
        (bytes.fromhex("ff7ff4fe0000000100000000"), "its answer has 0 slices"),
        (bytes.fromhex("ff7ff4fe00000001000000017fffffff"), "a slice of 2147483647 bytes"),
        (bytes.fromhex("ff7ff4fe000000010000000100000002ffff"), "its answer is none of TubeMQ's protocol"),
    ],
)
def test_what_is_none_of_the_protocol(server: TubeServer, reply: bytes, said: str) -> None:
    server.on("RegisterRequestP2M", ("reply", reply))
    with pytest.raises(RemoteProtocolError) as caught:
        ask(server.target)
    assert said in str(caught.value)
    assert f"master 127.0.0.1:{server.master_port}" in str(caught.value)
    assert ask(f"{server.target}").topics  # the next time it is asked anew


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer.ClearField("errMsg"),
        lambda answer: answer.topicInfos.append("nonsense"),
        lambda answer: answer.brokerInfos.append("nonsense"),
    ],
)
def test_answers_that_are_not_whole(server: TubeServer, change: Callable[[Any], None]) -> None:
    server.on("HeartRequestP2M", ("mangle", lambda answer: change(answer) or None))
    with pytest.raises(RemoteProtocolError):
        ask(server.target)
    assert server.calls[-1].method == "CloseRequestP2M"


def test_a_master_that_was_restarted_in_between(server: TubeServer) -> None:
    server.on("HeartRequestP2M", ("code", 411, "Invalid node id"))
    assert len(ask(server.target).topics) == 2
    assert [call.method for call in server.calls] == [*PRODUCER_CALLS[:2], *PRODUCER_CALLS]


def test_credentials(server: TubeServer) -> None:
    server.settings.require_auth = True
    with pytest.raises(DataProxyError, match="refuses a producer with code 415") as caught:
        ask(server.target)
    assert caught.value.details["code"] == 415
    assert "give the options user and password" in str(caught.value)
    assert ask(server.target, user="me", password="s3cret").topics


def test_a_close_that_fails_is_no_fault(server: TubeServer) -> None:
    server.on("CloseRequestP2M", "close")
    assert len(ask(server.target).topics) == 2


def test_tls(server: TubeServer, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with tls_front(server.master_port, authority.identity("localhost")) as front:
        target = f"tubemqs://127.0.0.1:{front.port}"
        found = ask(target, tls_ca=str(authority.ca), tls_server_name="localhost")
        assert len(found.topics) == 2
        assert front.names == ["localhost"]
        with pytest.raises(TransportError, match=r"TLS: .*127\.0\.0\.1"):
            ask(target, tls_ca=str(authority.ca))
        with pytest.raises(TransportError, match="TLS: "):
            ask(target)


def test_the_command_prints_a_table(server: TubeServer) -> None:
    result = topics(server.target, "one", "three")
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if "three" in line)
    cells = [cell.strip() for cell in re.split("[│┃]", row)][1:-1]
    assert cells == ["three", f"1 at 127.0.0.1:{server.broker_port}", "1", "3", "default"]
    server.settings.max_body_bytes = 2_000_000
    assert "2,000,000" in topics(server.target, "one,three").stdout


def test_the_command_names_what_is_missing(server: TubeServer) -> None:
    result = topics(server.target, "none", "nothing", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["missing"] == ["none", "nothing"]
    assert "has no topics 'none', 'nothing', or no broker that takes its messages now" in result.stderr
    result = topics(server.target, "none")
    assert (result.exit_code, result.stdout) == (1, "")


def test_the_command_prints_json(server: TubeServer) -> None:
    result = topics(server.target, "three", "--json")
    assert json.loads(result.stdout) == {
        "master": f"127.0.0.1:{server.master_port}",
        "largest_message": None,
        "topics": [
            {
                "topic": "three",
                "partitions": 3,
                "largest_message": None,
                "brokers": [
                    {
                        "broker": 1,
                        "host": "127.0.0.1",
                        "port": server.broker_port,
                        "stores": 1,
                        "partitions_per_store": 3,
                        "partitions": 3,
                    }
                ],
            }
        ],
        "missing": [],
    }


def test_the_command_without_a_master(server: TubeServer) -> None:
    server.stop_master()
    result = topics(server.target, "one")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("dataproxy: no master of tubemq://127.0.0.1:")
