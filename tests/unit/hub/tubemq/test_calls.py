"""Control calls from bytes to bytes, and the exceptions in the place of answers."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq.calls import ERROR, FATAL, SUCCESS, Calls, Outcome
from dataproxy.hub.tubemq.cluster.answers import ServerError
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.master import Master
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.calls import METHODS
from dataproxy.wire.tubemq.texts import Broker
from tests.support.reference.tubemq import cut, failed

VECTORS = json.loads((Path(__file__).parents[3] / "data" / "golden" / "tubemq.json").read_text())
EXCEPTIONS = {one["name"]: one for one in VECTORS["exception_responses"]}
OF_MASTER = (1, 2, 3, 4, 5, 6, 20, 21, 22)


def made() -> Calls:
    """Return the calls of a master that has the topic of the vectors."""
    layout = Layout()
    layout.put(Broker(1, "127.0.0.1", 8123), {"demo": TopicAt(3)})
    master = Master(layout, Clients(), random.Random(1), 0.0, version=1)
    return Calls(dict.fromkeys(OF_MASTER, master.answer))


def ask(calls: Calls, method: int, request: bytes, version: int = 3) -> Outcome:
    """Make a call."""
    return calls.answer(version, 1, method, request, "10.0.0.9", 0.0, 0)


def frame(serial: int, outcome: Outcome) -> bytes:
    """Return the frame of an exception."""
    return cut(serial, failed(outcome.status, outcome.exception, outcome.trace))


@pytest.mark.parametrize(
    "vector",
    [one for one in VECTORS["frames"] if one["kind"] == "request" and one["method"] in OF_MASTER],
    ids=lambda one: one["name"],
)
def test_every_request_of_the_vectors_is_answered_by_its_message(vector: dict[str, Any]) -> None:
    outcome = ask(made(), vector["method"], bytes.fromhex(vector["message_hex"]))
    assert (outcome.status, outcome.exception) == (SUCCESS, "")
    answer = getattr(messages, METHODS[vector["method"]].answer).FromString(outcome.data)
    assert answer.errCode in (200, 400, 411, 425, 431)


@pytest.mark.parametrize(("version", "name"), [(3, "standby"), (2, "standby_to_v2_client")])
def test_an_exception_has_the_name_that_its_client_knows(version: int, name: str) -> None:
    vector = EXCEPTIONS[name]

    def standby(*_: Any) -> Any:
        raise ServerError("StandbyException", vector["stackTrace"])

    request = messages.CloseRequestP2M(clientId="x").SerializeToString()
    outcome = ask(Calls({3: standby}), 3, request, version)
    assert frame(vector["serial"], outcome).hex() == vector["frame_hex"]


def test_versions_before_inlong() -> None:
    def standby(*_: Any) -> Any:
        raise ServerError("StandbyException", "")

    request = messages.CloseRequestP2M(clientId="x").SerializeToString()
    assert ask(Calls({3: standby}), 3, request, 1).exception == "com.tencent.tubemq.corerpc.exception.StandbyException"
    outcome = ask(made(), 3, request, 4)
    assert (outcome.status, outcome.exception.rpartition(".")[2]) == (ERROR, "UnknownProtocolException")


def test_a_method_that_nobody_has() -> None:
    vector = EXCEPTIONS["unsupported_method"]
    assert frame(vector["serial"], ask(made(), 13, b"")).hex() == vector["frame_hex"]
    for method in (0, -1, 7, 11, 19, 23, 2**31 - 1):
        assert ask(made(), method, b"").status == ERROR


def test_bytes_that_are_no_request() -> None:
    for request in (b"", b"\xff", b"\x0a\x01", b"\x0a\x02\xff\xfe"):
        outcome = ask(made(), 3, request)
        assert (outcome.status, outcome.data) == (FATAL, b"")
        assert "CloseRequestP2M" in outcome.trace


def test_a_failure_of_ours_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("a mistake")

    request = messages.CloseRequestP2M(clientId="x").SerializeToString()
    with caplog.at_level(logging.ERROR, "dataproxy.hub.tubemq"):
        outcome = ask(Calls({3: fails}), 3, request)
    vector = EXCEPTIONS["server_exception"]
    assert frame(vector["serial"], outcome).hex() == vector["frame_hex"]
    assert "CloseRequestP2M" in caplog.text and "a mistake" in caplog.text


@pytest.mark.parametrize("seed", range(20))
def test_damaged_requests_are_answered(seed: int) -> None:
    source = random.Random(seed)
    calls = made()
    requests = [one for one in VECTORS["frames"] if one["kind"] == "request" and one["method"] in OF_MASTER]
    for _ in range(100):
        vector = source.choice(requests)
        data = bytearray.fromhex(vector["message_hex"])
        for _ in range(source.randrange(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        outcome = ask(calls, vector["method"], bytes(data[: source.randrange(len(data) + 1)]))
        assert outcome.exception != "java.lang.reflect.InvocationTargetException"
