"""Answers over HTTP that are read as a whole: bytes and seconds are bounded, and the error says by what."""

from __future__ import annotations

import gc
import gzip
import weakref
import zlib
from collections.abc import Callable
from contextlib import closing

import pytest

from dataproxy.cli.hub import client as cli
from dataproxy.config import load_producer_config
from dataproxy.errors import DataProxyError, DiscoveryError, HubError, RemoteProtocolError, TransportError
from dataproxy.perf.hub import HubFigures
from dataproxy.producer.discovery.calls import Calls
from dataproxy.producer.discovery.targets import ManagerClient, parse_target
from dataproxy.spark.reading.hubclient import HubAddress, HubClient
from tests.campaigns.httppeers.answers import ANSWERS, ENDLESS, HostileAnswer, HostileServer

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
PART = b" " * (4 << 20)
DIGITS = b"0" * (4 << 20)


def packed(times: int) -> HostileAnswer:
    """Return 256 MiB of blanks, packed several times."""
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join(press.compress(PART) for _ in range(64)) + press.flush()
    for _ in range(times - 1):
        body = gzip.compress(body)
    names = b", ".join([b"gzip"] * times)
    return HostileAnswer(HEAD + b"content-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (names, len(body)) + body)


GIGANTIC = {
    "a body without end": HostileAnswer(HEAD + b"\r\n", again=PART),
    "a body of a terabyte": HostileAnswer(HEAD + b"content-length: %d\r\n\r\n" % (1 << 40), again=PART),
    "a chunk of a terabyte": HostileAnswer(CHUNKED + b"%x\r\n" % (1 << 40), again=PART),
    "chunks without end": HostileAnswer(CHUNKED, again=b"400000\r\n" + PART + b"\r\n"),
    "a chunk that takes all": HostileAnswer(CHUNKED + b"-1\r\n", again=PART),
    "trailers without end": HostileAnswer(CHUNKED + b"0\r\n", again=b"x: y\r\n" * (1 << 19)),
    "a bomb": packed(1),
}
#: Refused for what they are, however long they are.
FOREIGN = {
    "a chunk's size without end": HostileAnswer(CHUNKED, again=DIGITS),
    "what stands behind something packed": HostileAnswer(
        HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"{}"), again=PART
    ),
    "half of something packed": HostileAnswer(HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"{}")[:-9]),
    "a bomb in a bomb": packed(2),
    "another packing": HostileAnswer(HEAD + b"content-encoding: br\r\n\r\n{}"),
}


def ask_manager(url: str) -> None:
    client = ManagerClient(parse_target(url), load_producer_config(url, env={}, manager_timeout="60s"))
    with closing(client):
        client.fetch("g")


def ask_by_spark(url: str) -> None:
    with closing(HubClient(HubAddress.of(url, "", "", "", 60.0))) as client:
        client.logs("g")


def ask_by_command(url: str) -> None:
    assert cli.HubClient(url).get("/hub/stats")["records"]


def follow_by_command(url: str) -> None:
    next(cli.HubClient(url).follow("/hub/events/stream", 0, print))


ASKING: dict[str, Callable[[str], None]] = {
    "manager": ask_manager, "spark": ask_by_spark, "command": ask_by_command, "follow": follow_by_command
}  # fmt: skip


def refused(ask: Callable[[str], None], answer: HostileAnswer) -> DataProxyError:
    with HostileServer(answer) as server, pytest.raises(DataProxyError) as caught:
        ask(f"http://127.0.0.1:{server.port}")
    assert isinstance(caught.value, DiscoveryError | HubError | RemoteProtocolError | TransportError)
    assert caught.value.hint
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2000
    return caught.value


@pytest.mark.parametrize("name", GIGANTIC)
@pytest.mark.parametrize("asking", ASKING)
def test_what_has_no_end_or_is_gigantic_is_an_error(asking: str, name: str) -> None:
    most = 8 << 20 if asking == "manager" else 64 << 20
    assert f"with more than {most} bytes" in str(refused(ASKING[asking], GIGANTIC[name]))


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("asking", ASKING)
def test_what_cannot_be_read_is_an_error(asking: str, name: str) -> None:
    refused(ASKING[asking], FOREIGN[name])


@pytest.mark.parametrize("packing", ["gzip", "x-gzip", "deflate", "identity", "GZIP"])
def test_what_a_server_packs_unasked_is_unpacked(packing: str) -> None:
    body = b'{"records": 7}'
    packed = zlib.compress(body) if packing == "deflate" else body if packing == "identity" else gzip.compress(body)
    head = HEAD + b"content-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (packing.encode(), len(packed))
    with HostileServer(HostileAnswer(head + packed)) as server:
        url = f"http://127.0.0.1:{server.port}"
        assert cli.HubClient(url).get("/hub/stats") == {"records": 7}
        assert HubFigures(url)._ask() == 7


@pytest.mark.parametrize("status", [b"204 No Content", b"503 Busy"])
def test_an_empty_answer_is_empty_however_it_is_said_to_be_packed(status: bytes) -> None:
    head = b"HTTP/1.1 " + status + b"\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n"
    with HostileServer(HostileAnswer(head)) as server, pytest.raises(HubError, match=f"HTTP {int(status[:3])}"):
        ask_by_command(f"http://127.0.0.1:{server.port}")


def test_a_stream_whose_end_has_no_end_is_an_error() -> None:
    """Between two parts of a stream only so many bytes may come as an answer may have."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    error = refused(follow_by_command, HostileAnswer(head, again=b"x: y\r\n" * (1 << 19)))
    assert f"with more than {64 << 20} bytes" in str(error)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_command_ends_whatever_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_WHOLE_S", 0.2 if name in ENDLESS else 60.0)
    for ask in (ask_by_command, follow_by_command):
        text = str(refused(ask, ANSWERS[name]))
        assert name not in ENDLESS or "gave no complete answer" in text


@pytest.mark.parametrize("name", [*ANSWERS, *GIGANTIC, *FOREIGN])
def test_the_figures_of_a_run_do_without_a_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataproxy.perf.hub._PATIENCE", 0.2 if name in ENDLESS else 60.0)
    with HostileServer({**ANSWERS, **GIGANTIC, **FOREIGN}[name]) as server:
        assert HubFigures(f"http://127.0.0.1:{server.port}")._ask() is None


def test_calls_that_are_forgotten_leave_no_connection() -> None:
    body = HEAD + b"content-length: 2\r\n\r\n{}"
    with HostileServer(HostileAnswer(body)) as server:
        calls = Calls(most_bytes=1 << 10)
        answer = calls.pool.request("GET", f"http://127.0.0.1:{server.port}/", preload_content=False)
        assert calls.read(answer) == b"{}"
        found = weakref.ref(calls)
        del calls, answer
        gc.collect()
        assert found() is None
