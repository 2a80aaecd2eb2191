"""Reading requests whose few bytes become many: bounded pages and batches, and damaged entries cost no other."""

from __future__ import annotations

import gc
import json
import tracemalloc
import urllib.request
from collections import deque

import pytest

from dataproxy._core.base.column import Bytes
from dataproxy.errors import ConfigError, StoreError
from dataproxy.hub import Hub, open_store
from dataproxy.hub.reading.records import records_of
from dataproxy.hub.web.pages.records import Place, read_page
from dataproxy.stored.entry import StoredEntry
from tests.campaigns.hostile import BESIEGERS, binary
from tests.loopback.hub.peer import binary_frame, read_frame
from tests.native.probe_wire import Server, pack

RECORDS = 30_000


def sized(data: bytes) -> bytes:
    """Return bytes behind their length."""
    return len(data).to_bytes(4, "big") + data


def send(connect, hub, *frames: bytes) -> None:
    """Store some requests."""
    connection = connect(hub)
    for frame in frames:
        connection.sendall(frame)
        assert b"errCode" not in read_frame(connection)


def bomb() -> bytes:
    """Return 37 kB that are 30,000 records with 30 kB of attributes."""
    return next(BESIEGERS["records_with_long_attributes"].sends())


def test_pages_count_attributes_and_go_on_inside_an_entry(start_hub, connect):
    hub = start_hub()
    good = binary_frame(1, [b"good"], group="siege", stream="poison")
    send(connect, hub, good, bomb(), good)
    place, seen = "0", []
    for _ in range(5):
        with urllib.request.urlopen(f"{hub.manager_url}/hub/records?group=siege&limit=1&start={place}") as answer:
            data = answer.read()
        assert len(data) < 4 << 20
        page = json.loads(data)
        place = page["next"]
        seen += [(row["offset"], row["index"]) for row in page["records"]]
    assert seen[0] == (0, 0)
    assert seen[1:] == [(1, index) for index in range(len(seen) - 1)]
    assert len(seen) > 50


def test_batches_are_bounded_and_whole(tmp_path, connect):
    with Hub(tmp_path / "store") as hub:
        good = binary_frame(1, [b"good"], group="siege", stream="poison")
        send(connect, hub, good, bomb(), good)
    with open_store(tmp_path / "store") as store:
        seen = []
        for batch in store.record_batches():
            assert batch.get_total_buffer_size() < 1 << 30
            assert batch.nbytes < 100 << 20
            seen += zip(batch["offset"].to_pylist(), batch["index"].to_pylist(), strict=True)
            assert set(batch["body"].to_pylist()) <= {b"x", b"good"}
    assert seen == [(0, 0), *[(1, index) for index in range(RECORDS)], (2, 0)]


def test_a_damaged_entry_costs_no_other(tmp_path, connect, monkeypatch):
    with Hub(tmp_path / "store") as hub:
        send(connect, hub, *[binary_frame(n, [b"%d" % n, b"more"]) for n in range(5)])
        undamaged = Hub.entries

        def entries(self, *args, **options):
            for entry in undamaged(self, *args, **options):
                yield entry._replace(value=b"\x0f\x04?") if entry.offset == 2 else entry

        monkeypatch.setattr(Hub, "entries", entries)
        place = Place()
        first = read_page(hub, "g", None, place, 100, 1 << 20)
        assert [record.offset for record in first] == [0, 0, 1, 1]
        with pytest.raises(StoreError, match=r"start=0,0:3") as raised:
            read_page(hub, "g", None, place, 100, 1 << 20)
        behind = Place.parse(raised.value.details["next"])
        assert [record.offset for record in read_page(hub, "g", None, behind, 100, 1 << 20)] == [3, 3, 4, 4]
        assert read_page(hub, "g", None, behind, 100, 1 << 20) == []
    runs = StoredEntry.runs
    monkeypatch.setattr(
        StoredEntry, "runs", lambda self, to: runs(self._replace(value=b"\x0f\x04?") if self.offset == 2 else self, to)
    )
    with open_store(tmp_path / "store") as store:
        batches = store.record_batches("g")
        assert next(batches)["offset"].to_pylist() == [0, 0, 1, 1]
        with pytest.raises(StoreError) as raised:
            next(batches)
        where = raised.value.details
        on = store.record_batches("g", at={where["partition"]: where["offset"] + 1})
        assert [offset for batch in on for offset in batch["offset"].to_pylist()] == [3, 3, 4, 4]
        with pytest.raises(ConfigError, match="no group"):
            store.record_batches(at={0: 1})


def test_all_groups_are_read_with_one_look_at_the_logs(tmp_path, connect):
    with Hub(tmp_path / "store") as hub:
        send(connect, hub, *[binary_frame(n, [b"x"], group=f"g{n:03}") for n in range(60)])
    with open_store(tmp_path / "store") as store:
        looks = []

        class View:
            def __getattr__(self, name):
                if name == "logs":
                    looks.append(name)
                return getattr(view, name)

        view, store._view = store._view, View()
        groups = [group for batch in store.record_batches() for group in batch["group_id"].to_pylist()]
        assert groups == [f"g{n:03}" for n in range(60)]
        assert looks == ["logs"], "work grows with the groups, not with their square"
        store._view = view


@pytest.mark.parametrize("text", ["", "0", "7", "3,0:5", "0,1:2.3,4:5"])
def test_places_say_what_they_read(text):
    assert str(Place.parse(text)) == (text or "0")


@pytest.mark.parametrize("text", ["x", "0,1", "0,1:", "0,1:2.", "0,1:2.x", "-1", "0,1:-1"])
def test_what_is_no_place_is_refused(text):
    with pytest.raises(ValueError, match="not a place"):
        Place.parse(text)


# --- a few bytes that are many records with long attributes, and each with one of its own


def attribute_bomb(records: int = 30_000) -> bytes:
    """Return an entry's container, 60 kB of snappy: no record shares its attributes with the next one."""
    body = b"".join(sized(b"x") + sized(b"k=%d" % n) for n in range(records))
    common = b"groupId=siege&streamId=own&" + b"&".join(b"%x=" % n for n in range(4_000))
    answer = Server().serve(binary(pack(body), common[:30_000].rpartition(b"&")[0], ext=5, kind=0x27), 1)
    assert answer["action"] == "store", answer
    return bytes(answer["entry"])


def held(act) -> int:
    """Return the most bytes of Python objects that were there at a time meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_reader_holds_a_record_and_not_all_of_an_entry():
    data = attribute_bomb()
    entry = StoredEntry("siege", 0, 0, 1, 1, "own", "", data)
    assert held(lambda: [next(records_of(entry)) for _ in range(3)]) < 8 << 20
    assert held(lambda: deque(records_of(entry), 1)) < 8 << 20
    assert held(lambda: deque(entry.runs(Bytes()), 1)) < 8 << 20


def test_a_page_holds_what_it_has():
    entry = StoredEntry("siege", 0, 0, 1, 1, "own", "", attribute_bomb())

    class Source:
        def entries(self, *_args, **_options):
            yield entry

    place, seen = Place(), []

    def one() -> None:
        seen.extend(record.index for record in read_page(Source(), "siege", None, place, 10_000, 1 << 20))

    assert held(one) < 32 << 20
    assert 0 < len(seen) < 1000
    assert str(place) == f"0,0:0.{len(seen)}"
    one()
    assert seen == list(range(len(seen))), "it goes on inside the entry"
