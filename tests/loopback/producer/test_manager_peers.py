"""Hostile Managers: each question ends within ``manager_timeout``, with an answer or a DiscoveryError."""

import logging
import socket
import sys
import threading

import pytest

from dataproxy.codes import LOCAL_CODES
from dataproxy.config import load_producer_config
from dataproxy.errors import DiscoveryError
from dataproxy.producer.discovery.answer import decode_answer
from dataproxy.producer.discovery.proxies import ProxySource
from dataproxy.producer.discovery.targets import ManagerClient, parse_target
from dataproxy.types import Endpoint, ProxyList, ResolvedEndpoint
from tests.campaigns.httppeers.answers import ANSWERS, ENDLESS, HostileAnswer, HostileServer, proxies
from tests.loopback.hub.peer import wait_until

CODES = {name for name, code in LOCAL_CODES.items() if code.error == "DiscoveryError"}


def fetch(url, **options):
    client = ManagerClient(parse_target(url), load_producer_config(url, env={}, **options))
    try:
        return client.fetch("g")
    finally:
        client.close()


def callers():
    """Return how many threads are in a question."""
    return sum(thread.name in ("dataproxy-manager-call", "dataproxy-name-service") for thread in threading.enumerate())


@pytest.mark.parametrize("name", ANSWERS)
def test_every_hostile_manager_is_survived(name):
    with HostileServer(ANSWERS[name]) as server:
        told = None
        try:
            found = fetch(f"http://127.0.0.1:{server.port}", manager_timeout="300ms" if name in ENDLESS else "60s")
        except DiscoveryError as error:
            told = error
        if told is None:
            assert [endpoint.port for endpoint in found.endpoints] == [46801]
            assert name not in ENDLESS
        else:
            assert told.code in CODES
            assert told.retriable or name not in ENDLESS
            assert str(told).isprintable()
            assert len(str(told)) < 2000
        wait_until(lambda: not callers())


@pytest.mark.parametrize("name", ["a header byte by byte", "a body byte by byte", "continue for ever"])
def test_a_client_is_of_use_after_a_manager_that_drips(name):
    with HostileServer(ENDLESS[name]) as server:
        url = f"http://127.0.0.1:{server.port}"
        client = ManagerClient(parse_target(url), load_producer_config(url, env={}, manager_timeout="100ms"))
        for _ in range(3):
            with pytest.raises(DiscoveryError, match=r"did not answer within 0\.1 s"):
                client.fetch("g")
        client.close()
    wait_until(lambda: not callers())


HANDSHAKES = {
    "nothing": ENDLESS["silence"],
    "byte by byte": HostileAnswer(b"\x16\x03\x03\x40\x00\x02", again=b"\0"),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshake_that_drips(name):
    """The thread of the question ends with it: a handshake has one deadline, whatever comes byte by byte."""
    with HostileServer(HANDSHAKES[name]) as server:
        with pytest.raises(DiscoveryError) as caught:
            fetch(f"https://127.0.0.1:{server.port}", manager_timeout="200ms")
        wait_until(lambda: not callers())  # while the server goes on
    assert caught.value.code == "MANAGER_TIMEOUT"


def test_a_client_is_of_use_after_ctrl_c(monkeypatch):
    with HostileServer(GOOD) as server:
        url = f"http://127.0.0.1:{server.port}"
        client = ManagerClient(parse_target(url), load_producer_config(url, env={}))
        with monkeypatch.context() as patch:
            patch.setattr(threading.Event, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                client.fetch("g")
        assert client.fetch("g").endpoints
        client.close()
    wait_until(lambda: not callers())


GOOD = HostileAnswer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(proxies()) + proxies())


def interrupted(_event, _seconds=None):
    if threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
    return False


def test_a_name_service_that_hangs(monkeypatch):
    hang = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: hang.wait(60) and [])
    with pytest.raises(DiscoveryError) as caught:
        fetch("http://manager.test:8083", manager_timeout="200ms")
    assert caught.value.code == "MANAGER_TIMEOUT"
    hang.set()
    wait_until(lambda: not callers())


def test_what_urllib3_never_said_is_a_typed_error(monkeypatch):
    for error in (RecursionError("deep"), MemoryError(), OverflowError("x"), ValueError("\x1b[2J")):

        def ask(*_, error=error):
            raise error

        monkeypatch.setattr(ManagerClient, "_ask", ask)
        with pytest.raises(DiscoveryError) as caught:
            fetch("http://127.0.0.1:1")
        assert caught.value.code == "MANAGER_ANSWER"
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("depth", [32, 33, 64, 65, 100, 500_000])
def test_depth_is_bounded_whatever_the_interpreter_allows(depth):
    body = proxies()[:-1] + b', "more": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        if depth <= 32:
            assert isinstance(decode_answer(body), ProxyList)
        else:
            with pytest.raises(ValueError, match="nested deeper than 32 levels"):
                decode_answer(body)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("text", ['"', "\\", '"\\"', "[", "]]]", '[{"', '"[', '\\"[', "\\\\"])
def test_brackets_in_texts_do_not_count(text):
    assert isinstance(decode_answer(proxies(name=text * 100)), ProxyList)


class Turns:
    """An event that is not set for so many waits."""

    def __init__(self, turns):
        self.left = turns

    def wait(self, _seconds):
        self.left -= 1
        return self.left < 0

    def is_set(self):
        return self.left < 0


class Told:
    """Who is told of new proxies."""

    def __init__(self):
        self.lists = []

    def apply(self, proxies):
        self.lists.append([proxy.label for proxy in proxies])


def test_discovery_goes_on_whatever_happens(monkeypatch, caplog):
    config = load_producer_config("http://manager.test:8083", env={}, group_id="g")
    told = Told()
    source = ProxySource(config, told.apply)
    old = ResolvedEndpoint("10.0.0.1", 1, 2, "10.0.0.1", "10.0.0.1:1")
    source._known = [old]
    turns = [RecursionError("deep"), DiscoveryError("no"), ValueError("odd"), MemoryError()]

    def answer(_client, _group):
        if turns:
            raise turns.pop(0)
        return ProxyList(1, (Endpoint("10.0.0.2", 2),), 20, 0, 0)

    monkeypatch.setattr(ManagerClient, "fetch", answer)
    source._stop = Turns(5)
    with caplog.at_level(logging.WARNING):
        source._run()
    assert told.lists == [["10.0.0.2:2"]]
    assert [record.message.partition(",")[0] for record in caplog.records] == ["the proxy list was not refreshed"] * 4
    assert {record.name for record in caplog.records} == {"dataproxy.route"}


def test_a_list_that_could_not_be_taken_is_told_again(monkeypatch):
    config = load_producer_config("http://manager.test:8083", env={}, group_id="g")
    told = Told()
    taken = told.apply
    turns = [MemoryError(), MemoryError()]

    def apply(_told, proxies):
        if turns:
            raise turns.pop(0)
        taken(proxies)

    monkeypatch.setattr(Told, "apply", apply)
    monkeypatch.setattr(ManagerClient, "fetch", lambda *_: ProxyList(1, (Endpoint("10.0.0.2", 2),), 20, 0, 65536))
    limits = Limits()
    source = ProxySource(config, told.apply, limits.take)
    source._known = [ResolvedEndpoint("10.0.0.1", 1, 2, "10.0.0.1", "10.0.0.1:1")]
    source._stop = Turns(4)
    source._run()
    assert told.lists == [["10.0.0.2:2"]]
    assert limits.told == [65536] * 3  # once more with each list that was not taken


class Limits:
    """Who is told of the Manager's limit of a frame."""

    def __init__(self):
        self.told = []

    def take(self, length):
        self.told.append(length)
