"""``verify_store``: a whole store is found whole, any change is found, and no change ends the process."""

import os
import random
import shutil
import struct
from pathlib import Path

import lmdb
import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.wire.inlong import message
from dataproxy.errors import StoreError
from dataproxy.hub import verify_store
from tests.native.probe_feed import append_entries, retain_once


def make(path: Path) -> str:
    """Make a store with all that one can hold: small and large entries, streams, ids, dropped entries, free pages."""
    store = StoreCore(str(path), dedupe_ids=1000, retention_bytes=60_000)
    rng = random.Random(1)
    for n in range(40):
        body = rng.randbytes(rng.choice((10, 300, 3000, 9000)))
        value = message.encode(4, [({"groupId": "g", "streamId": "s", "sid": f"p{n}"}, [body])])
        append_entries(store, [(f"g{n % 3}", f"s{n % 4}", value)], receive_ms=1000 + n)
        retain_once(store, 1000 + n)
    store.close()
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made") / "store")


@pytest.fixture
def path(made, tmp_path):
    return shutil.copytree(made, tmp_path / "store")


def change(path, table, key, value):
    with lmdb.open(str(path), max_dbs=8) as env:
        base = env.open_db(table)
        with env.begin(write=True, db=base) as txn:
            if value is None:
                assert txn.delete(key)
            else:
                txn.put(key, value(txn.get(key)))


def keys(path, table):
    with lmdb.open(str(path), max_dbs=8, readonly=True) as env:
        base = env.open_db(table)
        with env.begin(db=base) as txn:
            return [bytes(key) for key, _ in txn.cursor()]


def test_a_whole_store_is_found_whole(path):
    seen = []
    report = verify_store(path, lambda done, pages: seen.append((done, pages)))
    assert (report.damage, report.ok) == ([], True)
    store = StoreCore(str(path), dedupe_ids=1000)
    logs = store.logs()
    assert (report.logs, report.entries, report.records, report.bytes) == (
        3,
        sum(log[4] for log in logs),
        sum(log[5] for log in logs),
        sum(log[6] for log in logs),
    )
    assert report.streams == len(store.counts())
    assert report.ids == store.stats()["ids"]
    store.close()


def test_an_empty_store_is_whole(tmp_path):
    StoreCore(str(tmp_path)).close()
    assert verify_store(tmp_path).ok


def flip(value):
    return value[:-1] + bytes([value[-1] ^ 1])


@pytest.mark.parametrize("table", [b"entries", b"logs", b"streams", b"ids", b"meta"])
def test_a_changed_row_is_found(path, table):
    change(path, table, keys(path, table)[0], flip)
    report = verify_store(path)
    assert report.damages >= 1
    assert "what was stored" in report.damage[0].what


@pytest.mark.parametrize("table", [b"entries", b"logs", b"streams", b"index", b"ids"])
def test_a_row_that_is_missing_is_found(path, table):
    found = keys(path, table)
    change(path, table, found[len(found) // 2], None)
    assert not verify_store(path).ok


def test_a_row_too_many_in_the_index_is_found(path):
    change(path, b"index", struct.pack(">IIQ", 0, 0, 10_000), lambda _: b"")
    assert "does not name its entries" in verify_store(path).damage[0].what


def test_a_store_in_use_is_refused(path):
    store = StoreCore(str(path))
    with pytest.raises(StoreError, match="in use by a hub") as caught:
        verify_store(path)
    assert caught.value.code == "STORE_TAKEN"
    store.close()
    assert verify_store(path).ok


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(StoreError, match="No such file"):
        verify_store(tmp_path)
    with pytest.raises(StoreError, match="No such file"):
        verify_store(tmp_path / "no")
    (tmp_path / "data.mdb").write_bytes(b"letters")
    assert not verify_store(tmp_path).ok


def test_a_file_that_lost_its_end_is_found(path):
    data = Path(path, "data.mdb")
    whole = data.read_bytes()
    for size in (0, 1, 4096, 5000, 8192, len(whole) // 2, len(whole) - 1):
        data.write_bytes(whole[:size])
        assert not verify_store(path).ok, size


def test_any_byte_that_is_changed_is_found_or_means_nothing(path, made):
    """Flips at random places: verify finds each one that changes anything that is stored, and never fails itself."""
    data = Path(path, "data.mdb")
    whole = data.read_bytes()
    rng = random.Random(7)
    found = 0
    for _ in range(400):
        at = rng.randrange(len(whole))
        data.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
        found += not verify_store(path).ok
    assert found > 100


def test_pages_of_noise_are_found(path):
    data = Path(path, "data.mdb")
    whole = data.read_bytes()
    rng = random.Random(8)
    for _ in range(60):
        page = rng.randrange(len(whole) // 4096) * 4096
        noise = rng.choice((rng.randbytes(4096), bytes(4096), b"\xff" * 4096, whole[8192:12288]))
        data.write_bytes(whole[:page] + noise + whole[page + 4096 :])
        verify_store(path)


@pytest.mark.parametrize("index", [True, False], ids=["index whole", "index gone"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_store_whose_damage_was_dropped_is_whole_again(tmp_path, index, first):
    """What an entry that cannot be read had counted for is found out, at once and not when its stream is empty."""
    path = str(tmp_path / "store")
    store = StoreCore(path, retention_ms=1000)
    for n in range(6):
        append_entries(store, [("g", f"s{n % 2}", b"x" * 100 * n)], records=n + 1, receive_ms=n)
    store.close()
    damaged = struct.pack(">IQ", 0, first)
    change(path, b"entries", damaged, lambda value: value[:8] + bytes([value[8] ^ 1]) + value[9:])
    if not index:
        change(path, b"index", struct.pack(">IIQ", 0, first % 2, first), None)
    assert not verify_store(path).ok
    store = StoreCore(path, retention_ms=1000)
    for now in (500, 1001 + first, 2003):  # its age is not known: it is kept for one from the first look on
        retain_once(store, now)
    assert store.stats()["damaged_entries"] == 1
    append_entries(store, [("g", "s0", b"new")], records=9, receive_ms=2003)
    counts, [log] = store.counts(), store.logs()
    store.close()
    report = verify_store(path)
    assert (report.damage, report.ok) == ([], True)
    assert sum(records for _, records, _ in counts.values()) == log[5] == report.records


@pytest.mark.parametrize("name", ["data.mdb", "writer.lock"])
def test_a_pipe_in_place_of_a_file_does_not_wait(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(StoreError, match="cannot verify the store"):
        verify_store(tmp_path)
