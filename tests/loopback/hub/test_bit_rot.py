"""Entries whose bytes changed on disk: every reader gives all others, and says where to read on."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from dataproxy.errors import StoreError
from dataproxy.hub import Hub, open_store
from dataproxy.hub.web.pages.records import Place, read_page
from tests.loopback.hub.peer import binary_frame, read_frame

ENTRIES = 10


@pytest.fixture
def rotten(tmp_path, connect):
    """Return a store in whose entry 5 a bit has changed."""
    store = tmp_path / "store"
    with Hub(store) as hub:
        connection = connect(hub)
        for n in range(ENTRIES):
            connection.sendall(binary_frame(n + 1, [b"MARKER%04d" % n, b"more"]))
            read_frame(connection)
    flip(store, b"MARKER0005")
    return store


def flip(store, mark: bytes) -> None:
    """Change a bit in every copy of some bytes in a store."""
    data, at = bytearray((store / "data.mdb").read_bytes()), -1
    while (at := data.find(mark, at + 1)) >= 0:
        data[at] ^= 1
    (store / "data.mdb").write_bytes(data)


def page(hub, start: str, limit: int) -> tuple[int, dict]:
    """Return status and JSON of a page."""
    try:
        with urllib.request.urlopen(f"{hub.manager_url}/hub/records?group=g&limit={limit}&start={start}") as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize("limit", [1, 2, 9, 10, 11, 100])
def test_pages_end_in_front_of_it_and_go_on_behind(rotten, start_hub, limit):
    hub = start_hub(str(rotten))
    place, seen, damaged = "0", [], 0
    for _ in range(40):
        status, found = page(hub, place, limit)
        place = found["next"]
        if status == 500:
            damaged += 1
            assert place == "0,0:6"
            assert str(rotten) not in found["errMsg"], "where it is on the machine"
            assert "entry 5" in found["errMsg"]
            continue
        seen += [(row["offset"], row["index"]) for row in found["records"]]
        if not found["records"]:
            break
    assert seen == [(offset, index) for offset in range(ENTRIES) if offset != 5 for index in (0, 1)]
    assert damaged == 1


def test_a_page_that_ends_before_it_does_not_look_at_it(rotten, start_hub):
    hub = start_hub(str(rotten))
    place = Place()
    assert [record.offset for record in read_page(hub, "g", None, place, 10, 1 << 20)] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    with pytest.raises(StoreError) as raised:
        read_page(hub, "g", None, place, 10, 1 << 20)
    assert (raised.value.code, raised.value.details["next"]) == ("STORE_DAMAGED", "0,0:6")
    assert [record.offset for record in hub.records("g", at={0: 6})] == [6, 6, 7, 7, 8, 8, 9, 9]


def tail(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``dataproxy tail``."""
    command = [sys.executable, "-m", "dataproxy", "tail", "g", "s", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def lines(*numbers: int) -> list[str]:
    """Return what tail prints of entries."""
    return [line for n in numbers for line in (f"MARKER{n:04}", "more")]


@pytest.mark.parametrize("way", ["--hub", "--store"])
def test_the_command_line_gives_what_is_before_it_and_can_pass_it(rotten, start_hub, way):
    where = start_hub(str(rotten)).manager_url if way == "--hub" else str(rotten)
    first = tail(way, where)
    assert (first.returncode, first.stdout.splitlines()) == (1, lines(0, 1, 2, 3, 4))
    assert "0,0:6" in first.stderr
    assert "Manager port" not in first.stderr
    rest = tail(way, where, "--start", "0,0:6")
    assert (rest.returncode, rest.stdout.splitlines()) == (0, lines(6, 7, 8, 9))
    inside = tail(way, where, "--start", "0,0:6.1", "--max", "2")
    assert (inside.returncode, inside.stdout.splitlines()) == (0, ["more", "MARKER0007"])
    wrong = tail(way, where, "--start", "0,x")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    with open_store(rotten) as reader:
        assert [record.offset for record in reader.records("g", start=6)] == [6, 6, 7, 7, 8, 8, 9, 9]
