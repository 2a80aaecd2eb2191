"""What the Manager server does for an answer is bounded, costs what its bytes cost, and stays off its only loop."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request

import pytest

from dataproxy.hub.web import manager
from dataproxy.hub.web.pages import answers
from dataproxy.hub.web.pages.slots import PageSlots
from tests.campaigns.hostile import binary
from tests.loopback.hub.peer import binary_frame, read_frame, wait_until

STREAMS = 3000
LOOP = "dataproxy-hub-manager"
MOST = 2 << 20  # an answer's page of 1 MiB, and the last row of it


def store(connect, hub, frames):
    """Have a hub store frames, with many on their way at a time."""
    connection, waiting = connect(hub), 0
    for frame in frames:
        connection.sendall(frame)
        waiting += 1
        if waiting == 200:
            for _ in range(waiting):
                assert b"errCode" not in read_frame(connection)
            waiting = 0
    for _ in range(waiting):
        assert b"errCode" not in read_frame(connection)


def many_streams(sign):
    """Return frames for streams with long names of one sign."""
    return (binary_frame(n + 1, [b"a"], stream=f"{n:06}" + sign * (200 // len(sign.encode()))) for n in range(STREAMS))


def wide(sign):
    """Return a frame whose records share 30 kB of attributes."""
    item = b"\0\0\0\x01x"
    return binary(item * 50, b"groupId=g&streamId=s&k=" + (sign.encode() * 30_000)[:30_000], count=50)


def get(hub, path):
    """Return the bytes at a path."""
    with urllib.request.urlopen(hub.manager_url + path, timeout=60) as answer:
        return answer.read()


def work(hub, path):
    """Return the processor seconds that an answer takes in this process for each byte, the least of a few tries."""
    best = 1e9
    for _ in range(5):
        begin = time.process_time()
        size = len(get(hub, path))
        best = min(best, (time.process_time() - begin) / size)
    return best


@pytest.fixture
def made_on(monkeypatch):
    """Return the list of (thread, bytes) of every text of JSON that is made for the server."""
    made = []
    for module in (manager, answers):
        encode = module.json_text

        def noted(value, _encode=encode):
            text = _encode(value)
            made.append((threading.current_thread().name, len(text)))
            return text

        monkeypatch.setattr(module, "json_text", noted)
    return made


@pytest.mark.parametrize("path", ["/hub/counts", "/hub/records?group=g&limit=10000"])
def test_hostile_names_cost_what_ordinary_ones_cost(start_hub, connect, path):
    """One that costs hundreds of times as much would hold everybody up."""
    costs = []
    for sign in ("s", "\x7f"):
        hub = start_hub()
        store(connect, hub, [wide(sign)] if "records" in path else many_streams(sign))
        costs.append(work(hub, path))
    assert costs[1] < 8 * costs[0]


@pytest.mark.parametrize("sign", ["\x7f", "\U000e0041", "\u202e", "中"])
def test_a_page_of_records_is_bounded_in_its_own_bytes(start_hub, connect, made_on, sign):
    hub = start_hub()
    store(connect, hub, [wide(sign)])
    place, seen = "0", []
    while True:
        data = get(hub, f"/hub/records?group=g&limit=10000&start={place}")
        assert len(data) < MOST
        page = json.loads(data)
        if not page["records"]:
            break
        place = page["next"]
        seen += [row["index"] for row in page["records"]]
    assert seen == list(range(50))
    assert not [size for thread, size in made_on if thread == LOOP and size > 1 << 16], "made on the loop"
    assert made_on


@pytest.mark.parametrize("durable", [False, True])
def test_counts_come_in_pages(start_hub, connect, made_on, tmp_path, durable):
    hub = start_hub(str(tmp_path / "store") if durable else None, partitions=3)
    names = [binary_frame(n, [b"a"], group=f"g{n % 7}", stream=f"{n:04}" + "\x7f" * 200) for n in range(1000)]
    store(connect, hub, names)
    for limit in (1, 99, 100, 333, 10_000):
        place, rows, pages = "", [], 0
        while place is not None and pages < 20:
            data = get(hub, f"/hub/counts?limit={limit}&start={place}")
            assert len(data) < MOST
            page = json.loads(data)
            rows += page["streams"]
            place, pages = page["next"], pages + 1
            assert len(page["streams"]) <= limit
        if place is None:
            found = {(row["group"], row["stream"]): row["records"] for row in rows}
            assert found == {key: count.records for key, count in hub.counts().items()}
            assert len(rows) == len(found) == 1000
        else:
            assert len(rows) == 20 * limit
            assert len({(row["group"], row["stream"]) for row in rows}) == len(rows)
    assert not [size for thread, size in made_on if thread == LOOP and size > 1 << 16], "made on the loop"


def test_counts_of_names_that_become_long_are_bounded(start_hub, connect):
    hub = start_hub()
    store(connect, hub, many_streams("\x7f"))
    data = get(hub, "/hub/counts?limit=10000")
    assert 1 << 20 < len(data) < MOST
    assert json.loads(data)["next"]


@pytest.mark.parametrize("place", ["x", "AAAA", "AAAAAAAAAAD_____AA==", "AAAAAAAAAAAAAAAAZw==", "%ff", "A" * 4000])
def test_what_is_no_place_among_streams_is_refused(start_hub, place):
    hub = start_hub()
    with pytest.raises(urllib.error.HTTPError) as raised:
        get(hub, f"/hub/counts?start={place}")
    assert raised.value.code == 400
    assert "not a place" in json.loads(raised.value.read())["errMsg"]


def test_counts_take_their_turn_with_pages_of_records(start_hub, monkeypatch):
    hub = start_hub()
    go = threading.Event()
    monkeypatch.setattr(manager, "counts_page", lambda *_: b"{}" if go.wait(60) else b"")
    hub._manager._pages = PageSlots(1, 60.0)
    one = threading.Thread(target=get, args=(hub, "/hub/counts"))
    one.start()
    wait_until(lambda: len(hub._manager._pages) == 1)
    with pytest.raises(urllib.error.HTTPError, match="503"):
        get(hub, "/hub/records?group=g")
    go.set()
    one.join()
    wait_until(lambda: len(hub._manager._pages) == 0)
    get(hub, "/hub/records?group=g")
