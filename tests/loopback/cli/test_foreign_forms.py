"""Answers of a hub that have the right names, and something else behind them: errors with a name, no tracebacks."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from typer.testing import CliRunner

from dataproxy.cli.app import app
from dataproxy.cli.hub.client import HubClient
from dataproxy.errors import TransportError
from tests.campaigns.httppeers.answers import HostileAnswer, HostileServer

COMMANDS = {
    "stats": "streams",
    "tail g s": "records",
    "clients": "clients",
    "groups": "groups",
    "locks": "locks",
    "transactions": "transactions",
    "tubemq groups": "groups",
    "events": "events",
}
FORMS: dict[str, Any] = {
    "a number": 5,
    "nothing": None,
    "a text": "x",
    "an object": {"a": 1},
    "numbers": [5],
    "lists": [[]],
    "objects without names": [{}],
    "objects of other values": [{"group": 5, "stream": None, "entries": "x", "body": "x", "records": 1, "bytes": 1}],
}


def asked(command: str, answer: dict[str, Any]) -> tuple[int, str]:
    body = json.dumps(answer).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    with HostileServer(HostileAnswer(head + body)) as server:
        found = CliRunner().invoke(app, [*command.split(), "--hub", f"http://127.0.0.1:{server.port}"])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found.exit_code, found.stderr


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", COMMANDS)
def test_another_form_is_an_error_with_a_name(command: str, form: str) -> None:
    code, said = asked(command, {COMMANDS[command]: FORMS[form], "next": None, "missed": 0})
    assert code == 1
    assert "check that --hub is the Manager port of a dataproxy hub" in said


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in ("tail g s", "events")])
@pytest.mark.parametrize("place", ["again", 5, [], True])
def test_a_page_that_follows_itself_ends_the_command(command: str, place: Any) -> None:
    code, said = asked(command, {COMMANDS[command]: [], "next": place})
    assert code == 1
    assert "no place of a next page" in said


@pytest.mark.parametrize("place", ["0", 5, [], True, None])
def test_a_page_of_records_that_follows_itself_ends_the_command(place: Any) -> None:
    record = {"body": "eA==", "attrs": {}, "dt_ms": 1, "offset": 0}
    code, said = asked("tail g s", {"records": [record], "next": place})
    assert code == 1
    assert "no place of a next page" in said


@pytest.mark.parametrize("place", [0, "1", [], True, None])
def test_a_page_of_events_that_follows_itself_ends_the_command(place: Any) -> None:
    event = {"number": 1, "time_ms": 1, "event": "came"}
    code, said = asked("events", {"events": [event], "next": place, "missed": 0})
    assert code == 1
    assert "no place of a next page" in said


@pytest.mark.parametrize("form", [one for one in FORMS if one != "a number"])
def test_a_number_of_missing_events_that_is_none_is_an_error_with_a_name(form: str) -> None:
    code, said = asked("events", {"events": [], "next": 0, "missed": FORMS[form]})
    assert code == 1
    assert "check that --hub is the Manager port of a dataproxy hub" in said


@contextmanager
def hub_that_hangs_up(answers: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Answer the first request of each connection, and close it behind the second one; yield what was asked."""
    asked_for: list[bytes] = []
    taken: list[socket.socket] = []

    def serve() -> None:
        for answer in answers:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            taken.append(one)
            with one, one.makefile("rb") as lines:
                for turn in range(2):
                    first = lines.readline()
                    if not first:
                        break
                    asked_for.append(first.split(b" HTTP")[0])
                    while lines.readline() not in (b"\r\n", b""):
                        pass
                    if turn == 0:
                        one.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked_for
        for one in (listener, *taken):
            with suppress(OSError):  # it is closed
                one.shutdown(socket.SHUT_RDWR)
        server.join(20)
        assert not server.is_alive()


def test_a_question_is_asked_again_where_its_connection_was_closed_between_two() -> None:
    pages = [b'{"rows": [{"n": 1}], "next": "p"}', b'{"rows": [{"n": 2}], "next": null}']
    with hub_that_hangs_up(pages) as (url, asked_for):
        assert list(HubClient(url).rows("/pages", "rows")) == [{"n": 1}, {"n": 2}]
    assert asked_for == [b"GET /pages?start=", b"GET /pages?start=p", b"GET /pages?start=p"]


def test_an_order_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN", "token")
    with hub_that_hangs_up([b'{"rows": [], "next": null}'] * 2) as (url, asked_for):
        client = HubClient(url)
        assert list(client.rows("/pages", "rows")) == []
        with pytest.raises(TransportError, match="cannot be reached"):
            client.change("POST", "/orders")
    assert asked_for == [b"GET /pages?start=", b"POST /orders"]
