"""Pages of stored requests over HTTP: their bounds, who may have them, and clients that meet no hub."""

import http.client
import json
import random
import socket
import threading
from contextlib import closing

import pyarrow as pa
import pytest

from dataproxy import Producer
from dataproxy.errors import DataProxyError, HubError, RemoteProtocolError, StoreError, TransportError
from dataproxy.hub import Hub
from dataproxy.hub.web import manager
from dataproxy.hub.web.connections import HttpLimits
from dataproxy.hub.web.pages import entries as entry_pages
from dataproxy.spark.reading.hubclient import HubAddress, HubClient
from tests.campaigns.httppeers.answers import ANSWERS, ENDLESS, HostileAnswer, HostileServer
from tests.loopback.hub.peer import binary_frame, read_frame, wait_until

ARROW = "application/vnd.apache.arrow.stream"


def client_of(url, *, token="", secret=("", ""), timeout=60.0):
    return closing(HubClient(HubAddress.of(url, token, *secret, timeout)))


def fill(hub, entries=5, size=10):
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
        for n in range(entries):
            one.sendall(binary_frame(n, [bytes([n]) * size]))
            read_frame(one)


def read_all(client, end, stream="", start=0):
    """Return the offsets of a range, page by page."""
    seen = []
    while start < end:
        page = client.entries("g", stream, 0, start, end)
        seen += [entry.offset for entry in page.entries]
        start = page.follows
    return seen


def test_a_page_over_http(hub):
    fill(hub)
    connection = http.client.HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    connection.request("GET", "/hub/entries?group=g&partition=0&from=1&to=4")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["content-type"]) == (200, ARROW)
    table = pa.ipc.open_stream(answer.read()).read_all()
    assert table["offset"].to_pylist() == [1, 2, 3]
    connection.request("GET", "/hub/entries?group=g&partition=0&from=1&to=6")
    answer = connection.getresponse()
    assert answer.status == 400
    assert "after it" in json.loads(answer.read())["errMsg"]
    connection.close()


def test_a_client_reads_what_is_there(hub):
    fill(hub)
    with client_of(hub.manager_url) as client:
        store, [log] = client.logs("g")
        assert (log.first_offset, log.next_offset, log.offset) == (0, 5, None)
        assert client.logs("g", 0)[1][0].offset == 0
        page = client.entries("g", "", 0, 0, 5)
        assert page.store == store
        assert [body for entry in page.entries for body, _ in entry.records()] == [bytes([n]) * 10 for n in range(5)]
        assert client.entries("g", "none", 0, 0, 5) == ([], 5, None, store)


def test_large_records_come_in_pages(start_hub, monkeypatch):
    """A page has one entry more than its bound at most, whatever is asked for."""
    monkeypatch.setattr(entry_pages, "_PAGE_BYTES", 1 << 20)
    hub = start_hub(max_frame_bytes=4 << 20, compress_entries=False)
    fill(hub, 6, 3_000_000)
    pages = []
    make = manager.entries_page
    monkeypatch.setattr(manager, "entries_page", lambda *given: pages.append(make(*given)) or pages[-1])
    with client_of(hub.manager_url) as client:
        assert read_all(client, 6) == list(range(6))
    assert len(pages) == 6
    assert max(map(len, pages)) < 3_100_000


def test_a_store_has_the_same_name_after_a_restart_and_another_one_has_not(tmp_path):
    names = []
    for folder in ("a", "a", "b", None, None):
        with Hub(folder and tmp_path / folder) as hub, client_of(hub.manager_url) as client:
            names.append(client.logs("g")[0])
    assert names[0] == names[1]
    assert len(set(names)) == 4


def test_who_may_read(start_hub):
    hub = start_hub(secret_id="me", secret_key="word")
    fill(hub, 1)
    with client_of(hub.manager_url) as client, pytest.raises(HubError, match=r"HTTP 403.*set the option token"):
        client.logs("g")
    for given in ({"token": hub.token}, {"secret": ("me", "word")}):
        with client_of(hub.manager_url, **given) as client:
            assert read_all(client, 1) == [0]
    with client_of(hub.manager_url, token="wrong") as client, pytest.raises(HubError, match="HTTP 403"):
        client.entries("g", "", 0, 0, 1)
    assert "word" not in repr(HubAddress.of("http://h", "", "me", "word", 1.0))
    assert hub.token not in repr(HubAddress.of("http://h", hub.token, "", "", 1.0))


def test_a_busy_hub_is_asked_again(start_hub, monkeypatch):
    """All pages are taken by one who does not read; his turn ends, and the reader has had patience."""
    monkeypatch.setattr(manager, "HttpLimits", lambda: HttpLimits(pages=1, stalled=3600.0))
    hub = start_hub(max_frame_bytes=8 << 20)
    fill(hub, 2, 6_000_000)
    mute = socket.socket()
    mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    mute.connect(("127.0.0.1", hub.manager_port))
    mute.sendall(b"GET /hub/entries?group=g&partition=0&from=0&to=2 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    wait_until(lambda: len(hub._manager._pages) == 1)
    refused = threading.Event()
    take = hub._manager._pages.take

    def taken(*given):
        found = take(*given)
        if not found:
            refused.set()
        return found

    monkeypatch.setattr(hub._manager._pages, "take", taken)
    found = []
    with client_of(hub.manager_url) as client:
        reader = threading.Thread(target=lambda: found.extend(read_all(client, 2)))
        reader.start()
        assert refused.wait(60)
        mute.close()
        reader.join(60)
    assert found == [0, 1]


def test_a_hub_that_is_gone_is_an_error_with_a_name(start_hub):
    hub = start_hub()
    fill(hub)
    with client_of(hub.manager_url) as client:
        client.logs("g")
        hub.close()
        with pytest.raises(TransportError, match="cannot be reached, or ended in the middle of an answer"):
            client.entries("g", "", 0, 0, 5)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_client_survives_what_is_no_hub(name):
    with HostileServer(ANSWERS[name]) as server:
        url = f"http://127.0.0.1:{server.port}"
        with client_of(url, timeout=0.3 if name in ENDLESS else 60.0) as client:
            for ask in (lambda: client.logs("g"), lambda: client.entries("g", "", 0, 0, 5)):
                with pytest.raises(DataProxyError) as caught:
                    ask()
                assert isinstance(caught.value, TransportError | RemoteProtocolError | HubError)
                assert len(str(caught.value)) < 2000
                assert str(caught.value).isprintable()


@pytest.fixture
def whole(hub):
    """Return a good page of five entries."""
    fill(hub)
    return entry_pages.entries_page(hub, entry_pages.Range("g", None, 0, 0, 5))


def answered(body, length=None):
    """Return what a server says that gives ``body``; without a length its end is that of the connection."""
    head = b"HTTP/1.1 200 OK\r\n" + (b"" if length is None else b"content-length: %d\r\n" % length)
    return HostileAnswer(head + b"connection: close\r\n\r\n" + body)


def test_a_page_that_is_cut_anywhere_is_an_error(whole):
    """With its length in front, and without, where nothing but the page itself can tell."""
    head = pa.ipc.open_stream(whole).schema.serialize().size
    for cut in (0, 1, 7, head // 2, head, head + 8, len(whole) // 2, len(whole) - 100, len(whole) - 20):
        for length in (len(whole), None):
            with (
                HostileServer(answered(whole[:cut], length)) as server,
                client_of(f"http://127.0.0.1:{server.port}") as one,
                pytest.raises((TransportError, RemoteProtocolError)),
            ):
                one.entries("g", "", 0, 0, 5)
    with HostileServer(answered(whole)) as server, client_of(f"http://127.0.0.1:{server.port}") as one:
        assert len(one.entries("g", "", 0, 0, 5).entries) == 5


def changed(whole, rows=slice(None), **facts):
    """Return a page with other facts in its head, and some of its rows."""
    with pa.ipc.open_stream(whole) as stream:
        batch = stream.read_next_batch()
    known = {key.decode(): value.decode() for key, value in batch.schema.metadata.items()}
    kept = batch.take(pa.array(list(range(batch.num_rows))[rows], pa.int64()))
    told = {name: value for name, value in (known | facts).items() if value is not None}
    kept = kept.replace_schema_metadata(told)
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, kept.schema) as writer:
        writer.write_batch(kept)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"rows": slice(0, 4)}, TransportError),
        ({"rows": slice(0, 4), "entries": "4"}, StoreError),
        ({"rows": slice(1, None), "entries": "4"}, StoreError),
        ({"rows": slice(0, 0), "entries": "0"}, StoreError),
        ({"rows": slice(None, None, -1)}, RemoteProtocolError),
        ({"next": "0"}, RemoteProtocolError),
        ({"next": "4"}, RemoteProtocolError),
        ({"next": "6"}, RemoteProtocolError),
        ({"next": None}, RemoteProtocolError),
        ({"next": "x"}, RemoteProtocolError),
        ({"store": None}, RemoteProtocolError),
        ({"entries": None}, RemoteProtocolError),
        ({"lost": "0-2"}, RemoteProtocolError),
        ({"lost": "0"}, RemoteProtocolError),
        ({"lost": "1-2"}, RemoteProtocolError),
        ({"lost": "0-9"}, RemoteProtocolError),
        ({"lost": "x"}, RemoteProtocolError),
    ],
)
def test_a_page_that_contradicts_itself_is_an_error(whole, change, kind):
    body = changed(whole, **change)
    with HostileServer(answered(body, len(body))) as server, client_of(f"http://127.0.0.1:{server.port}") as one:
        with pytest.raises(kind) as caught:
            one.entries("g", "", 0, 0, 5)
        assert type(caught.value) is kind


def test_what_was_dropped_is_told(start_hub):
    hub = start_hub(max_store_bytes=1 << 20, compress_entries=False)
    with Producer(hub.target, group_id="g") as producer:
        for _ in range(40):
            producer.send("s", random.Random(0).randbytes(100_000)).result(timeout=60)
    with client_of(hub.manager_url) as client:
        _, [log] = client.logs("g")
        assert log.first_offset > 0
        page = client.entries("g", "", 0, 0, log.next_offset)
        assert page.lost == (0, log.first_offset)
        assert read_all(client, log.next_offset) == list(range(log.first_offset, log.next_offset))
