"""Starting where hosts or the Manager cannot be found: the good ones are enough, ``start="lazy"`` waits for none."""

import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dataproxy
from dataproxy.hub import Hub
from dataproxy.observe.logship import LogHandler
from dataproxy.producer.discovery import pace
from dataproxy.producer.discovery import targets as discovery
from tests.support.scripted import Scripted
from tests.support.waiting import SECONDS, eventually

REAL = socket.getaddrinfo


class Names:
    """A name service: ``known`` names are 127.0.0.1, all others are unknown; ``asked`` counts."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.asked: list[str] = []
        self.hangs: threading.Event | None = None

    def look_up(self, host: str, port: int, *args: Any, **options: Any) -> list[Any]:
        """Answer as ``socket.getaddrinfo``."""
        if not host.endswith(".example"):
            return REAL(host, port, *args, **options)
        self.asked.append(host)
        if self.hangs is not None:
            self.hangs.wait(SECONDS)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return REAL("127.0.0.1", port, *args, **options)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Replace the name service, and have questions come soon after each other."""
    found = Names()
    monkeypatch.setattr(discovery.socket, "getaddrinfo", found.look_up)
    monkeypatch.setattr(pace, "_SOON_SECONDS", 0.01)
    monkeypatch.setattr(pace, "_SOON_MOST", 0.02)
    return found


def test_one_good_host_of_two_is_enough(names: Names, caplog: pytest.LogCaptureFixture) -> None:
    with Scripted() as server, dataproxy.Producer(f"tcp://gone.example:1,{server.address}", group_id="g") as p:
        assert p.send("s", b"x").result(SECONDS).attempts == 1
        asked = len(names.asked)
        assert eventually(lambda: len(names.asked) > asked + 3)
    said = [text for text in caplog.messages if "no address found for gone.example:1" in text]
    assert len(said) == 1  # however often it was asked for


def test_a_host_that_comes_later_is_used(names: Names) -> None:
    with Scripted() as first, Scripted() as second:
        target = f"tcp://{first.address},later.example:{second.port}"
        with dataproxy.Producer(target, group_id="g") as p:
            names.known.add("later.example")
            second.wait(lambda: second.peers)
            assert eventually(lambda: len({connection.address for connection in p.stats().connections}) == 2)


def test_without_any_host_the_constructor_raises_and_leaves_nothing(names: Names) -> None:
    before = threading.active_count()
    with pytest.raises(dataproxy.DiscoveryError, match=r"gone\.example"):
        dataproxy.Producer("tcp://gone.example:1,lost.example:2", group_id="g")
    assert threading.active_count() <= before


def test_lazily_messages_wait_for_the_name(names: Names, caplog: pytest.LogCaptureFixture) -> None:
    with Scripted() as server, dataproxy.Producer(f"tcp://late.example:{server.port}", group_id="g", start="lazy") as p:
        delivery = p.send("s", b"x")
        assert eventually(lambda: p.stats().last_error)
        last = p.stats().last_error
        assert last is not None
        assert (last.address, last.code, last.connected) == ("", "DISCOVERY", False)
        assert "late.example" in last.reason
        with pytest.raises(dataproxy.TransportError, match=r"late\.example"):
            p.wait_ready(0)
        names.known.add("late.example")
        p.wait_ready(SECONDS)
        assert delivery.result(SECONDS).attempts == 1
        assert p._trouble() == ""


def test_lazily_messages_expire_with_the_reason(names: Names) -> None:
    p = dataproxy.Producer("tcp://gone.example:1", group_id="g", start="lazy", delivery_timeout=0.5, linger=0)
    try:
        with pytest.raises(dataproxy.DeliveryExpired, match=r"no address found for 'gone\.example'") as caught:
            p.send("s", b"x").result(SECONDS)
        assert caught.value.details["cause"] == "DISCOVERY"
    finally:
        p.close(0)


def test_lazily_a_constructor_waits_for_no_name_service(names: Names) -> None:
    names.hangs = threading.Event()
    p = dataproxy.Producer("tcp://slow.example:1", group_id="g", start="lazy")
    try:
        p.send_nowait("s", b"x")
        assert p.report().pending == 1
    finally:
        p.close(0)
        names.hangs.set()


def test_what_was_accepted_before_a_proxy_was_known_is_delivered_by_close(names: Names) -> None:
    names.hangs = threading.Event()
    names.known.add("slow.example")
    with Scripted() as server, ThreadPoolExecutor(1) as pool:
        p = dataproxy.Producer(f"tcp://slow.example:{server.port}", group_id="g", start="lazy")
        p.send_nowait("s", b"x")
        closing = pool.submit(p.close, SECONDS)
        assert eventually(lambda: p.closed)
        names.hangs.set()
        assert closing.result(SECONDS).delivered == 1


def test_an_absent_manager_comes_later(names: Names) -> None:
    with Hub() as hub:
        manager = hub.manager_url
    p = dataproxy.Producer(manager, group_id="g", start="lazy", linger=0)
    try:
        delivery = p.send("s", b"x")
        assert eventually(lambda: p.stats().last_error)
        port = int(manager.rpartition(":")[2].strip("/"))
        with Hub(manager_port=port) as hub:
            assert delivery.result(SECONDS).attempts >= 1
            p.close()
            assert [record.body for record in hub.records("g", "s")] == [b"x"]
    finally:
        p.close(0)


def test_numeric_proxies_need_no_waiting(names: Names) -> None:
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g", start="lazy") as p:
        assert p._known_endpoints()
        assert p.send("s", b"x").result(SECONDS).attempts == 1
    assert names.asked == []


def test_a_log_handler_keeps_no_site_from_starting(names: Names) -> None:
    for target in ("tcp://gone.example:1", "http://gone.example:8083", "tcp://127.0.0.1:1"):
        handler = LogHandler(target, "g_app", "s_logs", linger=0)
        assert handler.producer.config.close_timeout == 2.0
        handler.emit(logging.LogRecord("app", logging.ERROR, "f", 1, "text", None, None))
        assert (handler.sent, handler.lost, handler.refused) == (1, 0, 0)
        handler.producer.close(0)
        handler.close()
