"""Hostile HTTP peers at the Manager server: each is answered or ended, none costs more than its share."""

import gc
import json
import logging
import resource
import signal
import socket
from http.client import HTTPConnection

import pytest

from dataproxy.hub.descriptors import Shortage, raise_limit
from dataproxy.hub.web import connections, manager
from dataproxy.hub.web.connections import HttpLimits
from tests.campaigns.httppeers.requests import HOSTILE, NEVER_READ, run
from tests.loopback.hub.peer import binary_frame, read_frame, wait_until
from tests.loopback.hub.test_command import start


def limited(monkeypatch, **limits):
    """Have the hubs of a test keep other limits."""
    monkeypatch.setattr(manager, "HttpLimits", lambda: HttpLimits(**limits))


def healthy(hub):
    """Tell whether the server answers.  Who is slow himself, with short limits, is sent away and comes again."""
    for last in (False,) * 9 + (True,):
        connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            if answer.status != 408 or last:
                return json.loads(answer.read())["ok"]
        except ConnectionError:  # RemoteDisconnected is one
            if last:
                raise
        finally:
            connection.close()
    return False


def fill(hub):
    """Store records of which each is a page that is more than the system keeps for who does not read."""
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
        for i in range(2):
            one.sendall(binary_frame(i, [bytes([i]) * 6_000_000]))
            read_frame(one)


def never_reading(port, source="127.0.0.1"):
    """Return a connection that asks for pages, has room for little, and reads nothing."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(30)
    one.bind((source, 0))
    one.connect(("127.0.0.1", port))
    one.sendall(NEVER_READ)
    return one


@pytest.mark.parametrize("name", HOSTILE)
def test_every_hostile_client_has_a_fair_end(monkeypatch, start_hub, caplog, name):
    limited(monkeypatch, request=0.2, idle=0.2)
    hub = start_hub()
    with caplog.at_level(logging.DEBUG):
        status = run(HOSTILE[name], ("127.0.0.1", hub.manager_port))
        assert status in HOSTILE[name].fair
        assert healthy(hub)
        wait_until(lambda: len(hub._manager.connections) == 0)
    for record in caplog.records:
        assert record.exc_info is None, record.getMessage()
        assert record.levelno < logging.WARNING, record.getMessage()


def test_a_body_that_comes_late_and_cannot_be_read_ends_quietly(start_hub, caplog):
    hub = start_hub()
    head, _, body = HOSTILE["gzip that is none"].data.partition(b"\r\n\r\n")
    with caplog.at_level(logging.DEBUG), socket.create_connection(("127.0.0.1", hub.manager_port), timeout=30) as one:
        one.sendall(head + b"\r\n\r\n")
        assert healthy(hub)  # the request waits for its body by now
        one.sendall(body)
        answer = b""
        while chunk := one.recv(4096):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_body_that_nobody_wanted_and_cannot_be_read_ends_quietly(start_hub, caplog):
    hub = start_hub()
    head, _, body = HOSTILE["gzip that is none"].data.partition(b"\r\n\r\n")
    head = head.replace(b"application/x-www-form-urlencoded", b"application/x-unknown")  # its body is not looked at
    with caplog.at_level(logging.DEBUG), socket.create_connection(("127.0.0.1", hub.manager_port), timeout=30) as one:
        one.sendall(head + b"\r\n\r\n")
        answer = one.recv(4096)
        one.sendall(body)
        while one.recv(4096):
            pass
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_pages_that_are_never_read_end(monkeypatch, start_hub):
    limited(monkeypatch, answer=0.2)
    hub = start_hub(max_frame_bytes=8 << 20)
    fill(hub)
    peers = [never_reading(hub.manager_port) for _ in range(8)]
    wait_until(lambda: len(hub._manager.connections) == 8)
    wait_until(lambda: len(hub._manager.connections) == 0)
    wait_until(lambda: len(hub._manager._pages) == 0)  # a thread may still make a page for who is gone
    assert healthy(hub)
    for peer in peers:
        peer.close()


def test_so_many_pages_at_a_time_and_no_more(monkeypatch, start_hub):
    limited(monkeypatch, pages=2, stalled=60.0)
    hub = start_hub(max_frame_bytes=8 << 20)
    fill(hub)
    peers = [never_reading(hub.manager_port) for _ in range(2)]
    wait_until(lambda: len(hub._manager._pages) == 2)
    connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    connection.request("GET", "/hub/records?group=g")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert b"too many pages" in answer.read()
    connection.close()
    for peer in peers:
        peer.close()
    wait_until(lambda: len(hub._manager._pages) == 0)


def test_a_page_that_nobody_reads_makes_room_for_one_that_is_read(monkeypatch, start_hub):
    """Of the address with most of them; the crowd comes from addresses of its own."""
    limited(monkeypatch, pages=4, stalled=60.0)
    hub = start_hub(max_frame_bytes=8 << 20)
    fill(hub)
    peers = [never_reading(hub.manager_port, "127.0.0.2") for _ in range(4)]
    wait_until(lambda: sum(one.stalled_since is not None for one in hub._manager._pages._taken) == 4)
    for _ in range(2):
        connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
        connection.request("GET", "/hub/records?group=g&limit=1")
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["records"]
        connection.close()
    for peer in peers:
        peer.close()
    wait_until(lambda: len(hub._manager._pages) == 0)


def test_the_longest_silent_connection_makes_room(monkeypatch, start_hub):
    limited(monkeypatch, connections=3)
    hub = start_hub()
    silent = [socket.create_connection(("127.0.0.1", hub.manager_port), timeout=30) for _ in range(3)]
    wait_until(lambda: len(hub._manager.connections) == 3)
    assert healthy(hub)
    assert silent[0].recv(1) == b"", "the first one went"
    assert len(hub._manager.connections) <= 3
    for one in silent:
        one.close()


def test_none_makes_room_while_all_are_at_work(monkeypatch, start_hub):
    limited(monkeypatch, connections=2)
    hub = start_hub()
    path = "/inlong/manager/openapi/dataproxy/getIpList/g"
    with hub.faults.add("manager_slow", seconds=0) as slow:
        busy = [HTTPConnection("127.0.0.1", hub.manager_port, timeout=30) for _ in range(2)]
        for one in busy:
            one.request("POST", path)
        slow.wait(2)
        late = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
        late.request("GET", "/healthz")
        assert late.getresponse().status == 503
        late.close()
    for one in busy:
        assert one.getresponse().status == 200, "who is served is served to the end"
        one.close()


def test_bodies_that_do_not_come_keep_nobody_out(monkeypatch, start_hub):
    """One address holds every connection but one with requests that it does not end."""
    limited(monkeypatch, connections=20, request=3600.0)
    hub = start_hub()
    honest = socket.create_connection(("127.0.0.1", hub.manager_port), 30, source_address=("127.0.0.2", 0))
    wait_until(lambda: len(hub._manager.connections) == 1)
    stalled, server = [], hub._manager.connections
    for name in ("half a body", "a body that never begins", "half a chunk") * 10:
        stalled.append(socket.create_connection(("127.0.0.1", hub.manager_port), timeout=30))
        stalled[-1].sendall(HOSTILE[name].data)
        if len(stalled) < 20:
            wait_until(lambda: sum(one.busy for one in list(server._open)) == len(stalled))
    for _ in range(5):
        assert healthy(hub)
    honest.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    assert honest.recv(4096).startswith(b"HTTP/1.1 200 "), "who has few is not the one who pays"
    assert len(hub._manager.connections) <= 20
    for one in (honest, *stalled):
        one.close()


def test_closing_waits_for_nobody(monkeypatch, start_hub):
    """The limits are far away: only the end of the hub can end these connections."""
    limited(monkeypatch, request=3600.0, answer=3600.0, stop=0.1)
    hub = start_hub(max_frame_bytes=8 << 20)
    fill(hub)
    peers = [never_reading(hub.manager_port) for _ in range(4)]
    for name in ("half a line", "half a body", "half a chunk", "silence"):
        peers.append(socket.create_connection(("127.0.0.1", hub.manager_port), timeout=30))
        peers[-1].sendall(HOSTILE[name].data)
    wait_until(lambda: len(hub._manager.connections) == 8)
    wait_until(lambda: len(hub._manager._pages) == 4)
    hub.close()
    assert hub._manager._loop.is_closed()
    for peer in peers:
        peer.close()
    gc.collect()


def test_no_producer_comes_while_http_peers_are_waited_for(start_hub, monkeypatch):
    """Who is slow over HTTP does not keep a hub that stops in service."""
    hub = start_hub()
    port, server, found = hub.port, hub._manager, []
    close = server.close

    def closing():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)
        found.append(True)
        close()

    monkeypatch.setattr(server, "close", closing)
    hub.close()
    assert found == [True]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_hub_under_hostile_clients(tmp_path, number):
    process = start("--store", str(tmp_path / "s"), "--port", "0", "--manager-port", "0", "--print-urls")
    urls = json.loads(process.stdout.readline())
    port = int(urls["manager_url"].rpartition(":")[2])
    producers = ("127.0.0.1", int(urls["target"].rpartition(":")[2]))
    with socket.create_connection(producers, timeout=30) as one:
        for i in range(8):
            one.sendall(binary_frame(i, [bytes([i]) * 500_000]))
            read_frame(one)
    peers = [never_reading(port) for _ in range(60)]
    for name in ("half a line", "half a body", "half a chunk", "silence"):
        peers.append(socket.create_connection(("127.0.0.1", port), timeout=30))
        peers[-1].sendall(HOSTILE[name].data)
    process.send_signal(number)
    _, err = process.communicate(timeout=25)
    assert process.returncode == 0
    assert all(line.startswith("hub: ") for line in err.splitlines())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(producers, timeout=30)
    for peer in peers:
        peer.close()


def test_descriptors_that_ran_out_are_logged_once_a_minute(caplog):
    now = [0.0]
    shortage = Shortage(lambda: now[0])
    for pauses in (0, 1, 2, 3):
        shortage.look(pauses)
    shortage.tell("the Manager port")
    assert len(caplog.records) == 1
    assert "the process has no file descriptors or no memory left" in caplog.text
    now[0] = 61.0
    shortage.look(3)
    assert len(caplog.records) == 1, "nothing new"
    shortage.look(4)
    assert len(caplog.records) == 2


def test_both_ports_tell_when_descriptors_run_out(start_hub, caplog, monkeypatch):
    monkeypatch.setattr(manager, "_LOOK_SECONDS", 0.01)
    hub = start_hub()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for port, words in ((hub.port, "the producers' port"), (hub.manager_port, "the Manager port")):
        hub._manager._shortage._quiet_until = 0.0
        with socket.socket() as peer:
            highest = peer.fileno()
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
            try:
                peer.connect(("127.0.0.1", port))
                wait_until(lambda words=words: words in caplog.text)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "Traceback" not in caplog.text
    assert healthy(hub)


def test_the_limit_of_descriptors_is_raised():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
        assert raise_limit(100) == hard == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_limits_have_sense():
    limits = HttpLimits()
    assert limits.pages < limits.connections
    assert connections.HttpLimits is HttpLimits
