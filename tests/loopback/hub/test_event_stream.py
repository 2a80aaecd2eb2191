"""Events of a hub as server-sent events: none is lost, a peer that does not read costs others nothing."""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import pytest

from dataproxy.cli.hub.client import HubClient
from dataproxy.errors import HubError, TransportError
from dataproxy.hub import Hub
from dataproxy.hub.web import manager
from dataproxy.hub.web.connections import HttpLimits
from tests.campaigns.httppeers.answers import HostileAnswer, HostileServer
from tests.loopback.hub.peer import read_all, wait_until

PATH = "/hub/events/stream"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
StartHub = Callable[..., Hub]


class Stream:
    """A stream of events, read line by line."""

    def __init__(self, hub: Hub, query: str = "", last: str | None = None, method: str = "GET") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
        self.connection.request(method, PATH + query, headers={} if last is None else {"Last-Event-ID": last})
        self.answer = self.connection.getresponse()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self.connection.close()

    def lines(self) -> Iterator[str]:
        """Yield lines until the stream ends."""
        while line := self.answer.readline():
            yield line.decode().removesuffix("\n")

    def message(self) -> dict[str, Any]:
        """Return the fields of the next message that has data, which is read as JSON."""
        fields: dict[str, Any] = {}
        for line in self.lines():
            name, colon, value = line.partition(": ")
            if name and colon:
                fields[name] = json.loads(value) if name == "data" else value
            if not line and "data" in fields:
                return fields
        raise EOFError

    def groups(self, count: int) -> list[str]:
        """Return the groups of the next events."""
        return [self.message()["data"]["group"] for _ in range(count)]

    def failure(self) -> tuple[int, str]:
        """Return the status and the words of an answer that is no stream."""
        return self.answer.status, json.loads(self.answer.read())["errMsg"]


def limited(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    """Have the hubs of a test keep other limits."""
    monkeypatch.setattr(manager, "HttpLimits", lambda: HttpLimits(**limits))


def happen(hub: Hub, first: int, last: int, **fields: object) -> None:
    for i in range(first, last + 1):
        hub._overview.events.add("reset", group=f"g{i}", **fields)


def names(first: int, last: int) -> list[str]:
    return [f"g{i}" for i in range(first, last + 1)]


def unheard(line: str) -> None:
    """Take what a reader says where it has to say nothing."""
    raise AssertionError(line)


def streams(hub: Hub) -> int:
    return len(hub._manager._streams)


def test_what_is_kept_comes_first_and_then_what_happens(start_hub: StartHub) -> None:
    hub = start_hub()
    happen(hub, 1, 250)
    with Stream(hub) as stream:
        assert stream.answer.status == 200
        assert stream.answer.headers["content-type"] == "text/event-stream"
        assert stream.answer.headers["cache-control"] == "no-store"
        assert stream.groups(250) == names(1, 250)
        happen(hub, 251, 251)
        message = stream.message()
    assert message["id"] == f"{hub._overview.events.run}-251"
    assert (message["data"]["number"], message["data"]["event"], message["data"]["group"]) == (251, "reset", "g251")
    assert "event" not in message  # what browsers hand to `onmessage`


def test_a_client_that_comes_again_goes_on_behind_its_last_event(start_hub: StartHub) -> None:
    hub = start_hub()
    happen(hub, 1, 3)
    with Stream(hub, "?after=1") as stream:
        assert stream.groups(1) == ["g2"]
        last = stream.message()["id"]
    happen(hub, 4, 5)
    with Stream(hub, "?after=1", last) as stream:  # a browser repeats the query
        assert stream.groups(2) == names(4, 5)


def test_what_is_not_kept_any_more_is_told_as_a_number(start_hub: StartHub) -> None:
    hub = start_hub()
    run = hub._overview.events.run
    happen(hub, 1, 4096 + 10)
    with Stream(hub, last=f"{run}-3") as stream:
        assert stream.message() == {"event": "missed", "data": {"missed": 7}, "retry": "1000"}
        assert stream.groups(4096) == names(11, 4096 + 10)


def test_an_id_of_an_earlier_run_begins_with_all_of_this_one(start_hub: StartHub) -> None:
    hub = start_hub()
    happen(hub, 1, 3)
    with Stream(hub, last="0123456789ab-2") as stream:
        assert stream.groups(3) == names(1, 3)


@pytest.mark.parametrize(
    ("query", "last", "said"),
    [
        ("", "17", "Last-Event-ID='17' is no id of this stream"),
        ("", "a-b", "Last-Event-ID='a-b' is no id"),
        ("", f"{'a' * 80}-1", "is no id"),
        ("?after=-1", None, "the parameter after='-1' must be a number from 0"),
        ("?after=x", None, "the parameter after='x' must be"),
    ],
)
def test_what_is_no_place_is_refused_with_words(start_hub: StartHub, query: str, last: str | None, said: str) -> None:
    hub = start_hub()
    with Stream(hub, query, last) as stream:
        status, words = stream.failure()
    assert status == 400
    assert said in words


def test_a_quiet_stream_is_kept_alive_by_comments(monkeypatch: pytest.MonkeyPatch, start_hub: StartHub) -> None:
    limited(monkeypatch, alive=0.05)
    with Stream(start_hub()) as stream:
        lines = stream.lines()
        assert [next(lines) for _ in range(5)] == [": events of a dataproxy hub", "retry: 1000", "", ": alive", ""]


def test_so_many_streams_and_no_more_and_who_has_gone_makes_room(
    monkeypatch: pytest.MonkeyPatch, start_hub: StartHub
) -> None:
    limited(monkeypatch, streams=2, alive=3600.0)
    hub = start_hub()
    with Stream(hub) as first, Stream(hub) as second:
        assert (first.answer.status, second.answer.status) == (200, 200)
        with Stream(hub) as third:
            status, words = third.failure()
        assert status == 503
        assert "2 streams of events are open" in words
        second.__exit__()
        wait_until(lambda: streams(hub) == 1)  # at once, and not with the next event or comment
        with Stream(hub) as fourth:
            assert fourth.answer.status == 200
    wait_until(lambda: streams(hub) == 0)
    assert hub._overview.events._listeners == ()


def test_a_reader_that_takes_nothing_holds_up_nobody_and_is_sent_away(
    monkeypatch: pytest.MonkeyPatch, start_hub: StartHub
) -> None:
    limited(monkeypatch, answer=0.3)
    hub = start_hub()
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", hub.manager_port))
    slow.sendall(f"GET {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    with Stream(hub) as quick:
        wait_until(lambda: streams(hub) == 2)
        for i in range(0, 8000, 100):  # 8,000 of them are more than all buffers of the slow one
            happen(hub, i + 1, i + 100, topic="t" * 256)
            assert quick.groups(100) == names(i + 1, i + 100)
        wait_until(lambda: streams(hub) == 1)
        happen(hub, 8001, 8001)
        assert quick.groups(1) == ["g8001"]
    slow.close()


def test_who_sends_more_requests_on_a_stream_is_disconnected(start_hub: StartHub) -> None:
    hub = start_hub()
    request = f"GET {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", hub.manager_port), timeout=30) as one:
        one.sendall(request)
        wait_until(lambda: streams(hub) == 1)
        one.sendall(request)
        read_all(one)  # which ends
    wait_until(lambda: streams(hub) == 0)


def test_a_head_request_gets_the_head_alone(start_hub: StartHub) -> None:
    hub = start_hub()
    with Stream(hub, method="HEAD") as stream:
        assert (stream.answer.status, stream.answer.read()) == (200, b"")
        assert stream.answer.headers["content-type"] == "text/event-stream"
    assert streams(hub) == 0


def test_streams_end_with_the_hub_at_once_and_whole(
    monkeypatch: pytest.MonkeyPatch, start_hub: StartHub, caplog: pytest.LogCaptureFixture
) -> None:
    limited(monkeypatch, stop=20.0)
    hub = start_hub()
    with Stream(hub) as stream, caplog.at_level(logging.WARNING):
        begin = time.monotonic()
        hub.close()
        assert time.monotonic() - begin < 15
        assert list(stream.lines())[-1] == ""  # the end of the chunks, no break
    assert caplog.records == []


def test_reading_needs_credentials_as_all_pages_do(start_hub: StartHub) -> None:
    with Stream(start_hub(secret_id="me", secret_key="key")) as stream:
        assert stream.answer.status == 403


def test_clients_that_come_are_told_without_a_question(start_hub: StartHub) -> None:
    hub = start_hub()
    with Stream(hub) as stream, socket.create_connection(("127.0.0.1", hub.port)) as producer:
        found = stream.message()["data"]
        name = "{}:{}".format(*producer.getsockname())
    assert (found["event"], found["protocol"], found["client"]) == ("came", "dataproxy", name)


# --- as the commands read it


def test_a_connection_that_breaks_is_made_again_without_loss(start_hub: StartHub) -> None:
    hub = start_hub()
    happen(hub, 1, 2)
    found = HubClient(hub.manager_url).follow(PATH, 1, unheard)
    assert json.loads(next(found).data)["group"] == "g2"
    hub._manager._loop.call_soon_threadsafe(hub._manager.connections.drop)
    happen(hub, 3, 4)
    assert [json.loads(next(found).data)["group"] for _ in range(2)] == names(3, 4)


def test_a_hub_that_is_not_there_at_first_is_an_error_with_words(start_hub: StartHub) -> None:
    hub = start_hub()
    hub.close()
    with pytest.raises(TransportError, match="cannot be reached"):
        next(HubClient(hub.manager_url).follow(PATH, 0, unheard))


def test_a_hub_that_has_gone_is_asked_until_it_answers_and_that_is_said_once(start_hub: StartHub) -> None:
    hub = start_hub()
    happen(hub, 1, 1)
    told: list[str] = []
    found = HubClient(hub.manager_url).follow(PATH, 0, told.append)
    next(found)
    hub.close()

    def restart() -> None:
        wait_until(lambda: told)
        time.sleep(1)  # more than one try
        happen(start_hub(manager_port=hub.manager_port), 1, 1)

    with ThreadPoolExecutor(1) as other:
        done = other.submit(restart)
        assert json.loads(next(found).data)["number"] == 1
        done.result()
    assert len(told) == 2
    assert re.fullmatch("the hub at .* cannot be reached: .*; it is asked again until it answers", told[0])
    assert told[1].endswith("answers again")


def test_a_hub_without_room_is_asked_again_and_the_stream_goes_on(
    monkeypatch: pytest.MonkeyPatch, start_hub: StartHub
) -> None:
    limited(monkeypatch, streams=1)
    hub = start_hub()
    happen(hub, 1, 1)
    told: list[str] = []
    found = HubClient(hub.manager_url).follow(PATH, 0, told.append)
    next(found)
    hub._manager._loop.call_soon_threadsafe(hub._manager.connections.drop)
    wait_until(lambda: streams(hub) == 0)

    def make_room(other: Stream) -> None:
        wait_until(lambda: told)
        happen(hub, 2, 3)
        other.__exit__()

    with Stream(hub) as other, ThreadPoolExecutor(1) as threads:
        assert other.answer.status == 200
        done = threads.submit(make_room, other)
        assert [json.loads(next(found).data)["group"] for _ in range(2)] == names(2, 3)
        done.result()
    assert len(told) == 2
    assert "with HTTP 503" in told[0]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_of_who_comes_again_is_final(status: int) -> None:
    with HostileServer(HostileAnswer(HEAD + b"id: r-1\ndata: {}\n\n")) as server:
        found = HubClient(f"http://127.0.0.1:{server.port}").follow(PATH, 0, unheard)
        assert next(found).id == "r-1"
        server._answer = HostileAnswer(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status)
        with pytest.raises(HubError, match=f"with HTTP {status}"):
            next(found)


@pytest.mark.parametrize(
    "again", [b"x" * 65536, b"data: " + b"x" * 1000 + b"\n", b"%d: x\n" % 7 * 9000, b"data:\n" * 9000]
)
def test_a_line_or_a_message_without_end_is_an_error(again: bytes) -> None:
    with HostileServer(HostileAnswer(HEAD, again=again * (1 + 65536 // len(again)))) as server:
        found = HubClient(f"http://127.0.0.1:{server.port}").follow(PATH, 0, unheard)
        with pytest.raises(HubError, match=r"a line or a message of more than 1,048,576 bytes"):
            next(found)


def test_a_hub_that_was_started_again_is_followed_from_its_first_event(start_hub: StartHub) -> None:
    hub = start_hub()
    happen(hub, 1, 1)
    found = HubClient(hub.manager_url).follow(PATH, 0, unheard)
    first = next(found)
    hub.close()
    again = start_hub(manager_port=hub.manager_port)
    happen(again, 1, 2)
    second = next(found)
    assert json.loads(second.data)["number"] == 1
    assert first.id.partition("-")[0] != second.id.partition("-")[0]


def test_an_answer_that_is_no_stream_is_an_error(start_hub: StartHub) -> None:
    hub = start_hub()
    with pytest.raises(HubError, match="answered /hub/nowhere with HTTP 404"):
        next(HubClient(hub.manager_url).follow("/hub/nowhere", 0, unheard))
    with pytest.raises(HubError, match="answered /hub/stats with HTTP 200"):
        next(HubClient(hub.manager_url).follow("/hub/stats", 0, unheard))
