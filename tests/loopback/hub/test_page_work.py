"""Pages of records cost what they give: one for each that is read, and a text for each request."""

from __future__ import annotations

import http.client
import json
import socket
import threading

import pytest

from dataproxy import Producer
from dataproxy.hub.web import manager
from dataproxy.hub.web.pages import answers
from tests.loopback.hub.peer import wait_until

RECORDS = 8000
ASK = b"GET /hub/records?group=g&limit=10000 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def hub(start_hub):
    hub = start_hub()
    with Producer(hub.target, group_id="g", linger=0.0) as producer:
        for first in range(0, RECORDS, 1000):
            producer.send_batch("s", [b"%07d" % n + b"x" * 500 for n in range(first, first + 1000)]).result(timeout=60)
    return hub


@pytest.fixture
def made(monkeypatch):
    """Return the list of the pages of records that are made."""
    pages = []
    make = manager.records_page

    def noted(*arguments):
        data = make(*arguments)
        pages.append(data)
        return data

    monkeypatch.setattr(manager, "records_page", noted)
    return pages


def test_who_does_not_read_gets_one_page_made(hub, made):
    """However many it has asked for: the system's buffers take less than a page."""
    with socket.socket() as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        mute.connect(("127.0.0.1", hub.manager_port))
        mute.sendall(ASK * 20)
        stalled = threading.Event()
        server = hub._manager

        def look() -> bool:
            server._loop.call_soon_threadsafe(
                lambda: any(one.stalled_since for one in server._pages._taken) and stalled.set()
            )
            return stalled.wait(0.01)

        wait_until(look)
        assert len(made) == 1
        assert len(made[0]) > 2 * manager._SOCKET_BYTES + (64 << 10)


def test_what_the_records_of_a_request_share_is_made_to_text_once(hub, monkeypatch):
    texts = []
    encode = answers.json_text
    monkeypatch.setattr(answers, "json_text", lambda value: texts.append(value) or encode(value))
    seen, place = [], answers.Place()
    while page := json.loads(answers.records_page(hub, "g", None, place, 10_000))["records"]:
        seen += page
    assert [row["attrs"] for row in seen] == [record.attrs for record in hub.records("g")]
    shown = [(row["offset"], row["index"], row["partition"], row["receive_ms"], row["source"]) for row in seen]
    read = hub.records("g")
    assert shown == [(one.offset, one.index, one.partition, one.receive_ms, one.source) for one in read]
    assert len(seen) == RECORDS
    requests = len({row["offset"] for row in seen})
    assert len(texts) < 4 * requests + 4 * RECORDS // 1000 + 20


def test_who_reads_his_pages_does_not_wait_behind_those_of_strangers(hub, monkeypatch):
    """The threads for first pages of connections are all at work, and stay so."""
    make, go_on = manager.records_page, threading.Event()
    at_work = threading.Semaphore(0)

    def slow(_hub, group, *arguments):
        if group == "slow":
            at_work.release()
            assert go_on.wait(60)
        return make(_hub, group, *arguments)

    monkeypatch.setattr(manager, "records_page", slow)
    reader = http.client.HTTPConnection("127.0.0.1", hub.manager_port, timeout=60)
    peers = []
    try:
        for first in (True, False):
            reader.request("GET", "/hub/records?group=g")
            assert len(json.loads(reader.getresponse().read())["records"]) > 0
            for _ in range(8 if first else 0):
                peers.append(socket.create_connection(("127.0.0.1", hub.manager_port)))
                peers[-1].sendall(ASK.replace(b"group=g", b"group=slow"))
            assert not first or (at_work.acquire(timeout=60) and at_work.acquire(timeout=60))
    finally:
        go_on.set()
        reader.close()
        for peer in peers:
            peer.close()
