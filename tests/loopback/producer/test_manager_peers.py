"""Hostile Managers: each question ends within ``manager_timeout``, with an answer or a DiscoveryError."""

import json
import logging
import socket
import sys
import threading
import time

import pytest

from dataproxy.codes import LOCAL_CODES
from dataproxy.config import load_producer_config
from dataproxy.errors import DiscoveryError
from dataproxy.producer.discovery.answer import decode_answer
from dataproxy.producer.discovery.clusters import Answer
from dataproxy.producer.discovery.proxies import ProxySource
from dataproxy.producer.discovery.targets import ManagerClient, parse_target
from dataproxy.types import Endpoint, ProxyList, ResolvedEndpoint
from tests.campaigns.httppeers.answers import ANSWERS, ENDLESS, HostileAnswer, HostileServer, proxies
from tests.loopback.hub.peer import wait_until
from tests.support.discovery import Told

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


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 999999 X\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
    ids=["short", "many fields", "status", "ssh"],
)
def test_a_broken_answer_is_not_told_as_nobody_there(data):
    said = pytest.raises(DiscoveryError, match="sent an incomplete or invalid answer")
    with HostileServer(HostileAnswer(data)) as server, said as caught:
        fetch(f"http://127.0.0.1:{server.port}")
    assert caught.value.code == "MANAGER_ANSWER"


def test_an_answer_that_is_not_utf8_is_told_in_words():
    with pytest.raises(ValueError, match=r"^is not JSON \(.*utf-8"):
        decode_answer(b'{"success": true, "errMsg": "\xff", "data": {"nodeList": []}}')


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


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (b"", "DISCOVERY", "closed the connection without a whole answer; check host, port and scheme"),
        (b"SSH-2.0-x\r\n", "MANAGER_ANSWER", "sent an incomplete or invalid answer: BadStatusLine('SSH-2.0-x"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", "MANAGER_ANSWER", "invalid answer: IncompleteRead(1 bytes"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "MANAGER_ANSWER", "InvalidChunkLength"),
    ],
)
def test_what_is_no_answer_is_told_in_words(answer, code, words):
    with HostileServer(HostileAnswer(answer)) as server, pytest.raises(DiscoveryError) as caught:
        fetch(f"http://127.0.0.1:{server.port}")
    assert words in str(caught.value)
    assert "Connection aborted" not in str(caught.value)
    assert caught.value.code == code


HANDSHAKES = {
    "nothing": ENDLESS["silence"],
    "byte by byte": HostileAnswer(b"\x16\x03\x03\x40\x00\x02", again=b"\0", unasked=True),
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
    """A pause that ends the waits after so many, at any of which all is due."""

    def __init__(self, turns, source):
        self.left = turns
        self.stopped = False
        self.source = source

    def wait(self, _seconds):
        self.left -= 1
        self.stopped = self.left < 0
        if not self.stopped:
            self.source._schedule.at_once(0.0)
        return self.stopped

    def wake(self):
        pass


def source_of(told, turns, target="http://manager.test:8083"):
    """Return a source that knows a proxy of the group g, and takes so many turns."""
    source = ProxySource(load_producer_config(target, env={}, group_id="g"), told)
    known = ResolvedEndpoint("10.0.0.1", 1, 2, "10.0.0.1", "10.0.0.1:1")
    source._answers["g"] = Answer(ProxyList(1, (Endpoint("10.0.0.1", 1),)), (known,))
    source._picture = source._draw()
    source._pause = Turns(turns, source)
    return source


def test_discovery_goes_on_whatever_happens(monkeypatch, caplog):
    told = Told()
    source = source_of(told, 5)
    turns = [RecursionError("deep"), DiscoveryError("no"), ValueError("odd"), MemoryError()]

    def answer(_client, _group):
        if turns:
            raise turns.pop(0)
        return ProxyList(1, (Endpoint("10.0.0.2", 2),), 20, 0, 0)

    monkeypatch.setattr(ManagerClient, "fetch", answer)
    with caplog.at_level(logging.WARNING):
        source._run()
    assert told.labels() == [["10.0.0.2:2"]]
    assert [record.message.partition(",")[0] for record in caplog.records] == ["the proxy list was not refreshed"] * 4
    assert {record.name for record in caplog.records} == {"dataproxy.route"}


def test_a_list_that_could_not_be_taken_is_told_again(monkeypatch):
    told = Told()
    told.errors = [MemoryError(), MemoryError()]
    monkeypatch.setattr(ManagerClient, "fetch", lambda *_: ProxyList(1, (Endpoint("10.0.0.2", 2),), 20, 0, 65536))
    source = source_of(told, 4)
    source._run()
    assert told.labels() == [["10.0.0.2:2"]]
    assert told.lengths == [65536]


def test_an_error_about_a_new_group_does_not_make_it_ask_without_a_pause(monkeypatch):
    """What nobody foresaw counts as a failed question: the next one comes later."""

    def fail(*_):
        raise RuntimeError("odd")

    monkeypatch.setattr(ManagerClient, "fetch", fail)
    source = source_of(Told(), 1)
    source.want("new", lambda *_: None)
    source._run()
    assert source._schedule.wait(time.monotonic()) > 0


@pytest.mark.parametrize("change", ["id", "address", "port", "switch", "cluster"])
def test_every_change_of_a_list_is_told_and_nothing_else(monkeypatch, change):
    first = ProxyList(1, (Endpoint("10.0.0.1", 1), Endpoint("10.0.0.2", 2)), ids=("1", "2"))
    other = {
        "id": first._replace(ids=("1", "3")),
        "address": first._replace(endpoints=(Endpoint("10.0.0.1", 1), Endpoint("10.0.0.3", 2))),
        "port": first._replace(endpoints=(Endpoint("10.0.0.1", 1), Endpoint("10.0.0.2", 3))),
        "switch": first._replace(is_switch=1),
        "cluster": first._replace(cluster_id=2),
    }[change]
    turned = first._replace(endpoints=first.endpoints[::-1], ids=first.ids[::-1], load=99)
    answers = [first, first, turned, other, other]
    monkeypatch.setattr(ManagerClient, "fetch", lambda *_: answers.pop(0))
    told = Told()
    source = source_of(told, 5)
    source._run()
    assert len(told.pictures) == 2
    numbers = [[cluster.number for cluster in picture.clusters] for picture in told.pictures]
    assert (numbers[0] != numbers[1]) == (change in ("switch", "cluster")), "a new number moves all connections"


def test_the_smallest_limit_of_a_frame_holds(monkeypatch):
    limits = {"g": [0, 9000, 9000, 0], "h": [5000, 5000, 20000, 0]}
    monkeypatch.setattr(
        ManagerClient, "fetch", lambda _, group: ProxyList(1, (Endpoint("10.0.0.1", 1),), 20, 0, limits[group].pop(0))
    )
    told = Told()
    source = source_of(told, 4)
    source._answers["h"] = source._answers["g"]
    source._groups["h"] = 1
    source._run()
    assert told.lengths == [5000, 9000, 0]


def test_without_a_proxy_it_asks_at_once_and_one_question_at_a_time(monkeypatch):
    asked, running = [], []

    def answer(*_):
        running.append(1)
        asked.append(len(running))
        told.active = None if len(asked) >= 4 else told.active
        running.pop()
        return ProxyList(1, (Endpoint("10.0.0.1", 1),))

    monkeypatch.setattr(ManagerClient, "fetch", answer)
    told = Told()
    source = ProxySource(load_producer_config("http://manager.test:8083", env={}, group_id="g"), told)
    source.begin()
    source.start()
    try:
        source.lost()
        wait_until(lambda: not source._lost)
        assert len(asked) == 1, "there is still a connection"
        told.active = set()
        for _ in range(100):
            source.lost()
        wait_until(lambda: len(asked) >= 3)  # again, while there is none
    finally:
        source.stop()
    assert set(asked) == {1}


def test_bad_entries_are_told_once_and_hide_nothing(monkeypatch, caplog):
    nodes = [{"id": 1, "ip": "10.0.0.7", "port": 7}, {"ip": "10.0.0.8", "port": 0}]
    body = json.dumps({"success": True, "data": {"clusterId": 1, "nodeList": nodes}}).encode()
    monkeypatch.setattr(ManagerClient, "fetch", lambda *_: decode_answer(body))
    told = Told()
    source = source_of(told, 3)
    with caplog.at_level(logging.WARNING):
        source._run()
    assert told.labels() == [["10.0.0.7:7"]]
    (message,) = caplog.messages
    assert message.endswith("lists proxies that cannot be used, the others are: port 0 - at `$.data.nodeList[1].port`")
