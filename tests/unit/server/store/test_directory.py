"""Directories that are in use, foreign, damaged or of another version: a StoreError with path and way out."""

import os
import struct
from pathlib import Path

import lmdb
import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import StoreError
from tests.native.probe_feed import append_entries, retain_once


@pytest.fixture
def path(tmp_path):
    made = str(tmp_path / "store")
    store = StoreCore(made)
    append_entries(store, [("g", "s", b"x" * 3000)] * 100)
    store.close()
    return made


def refused(path, text, *, opens=(StoreCore, StoreView.open)):
    for call in opens:
        with pytest.raises(StoreError) as caught:
            call(path)
        assert repr(path) in caught.value.message
        assert text in str(caught.value)
        assert caught.value.hint
        assert caught.value.details["path"] == path


def test_a_second_writer(path):
    store = StoreCore(path)
    refused(path, f"in use by another hub (process {os.getpid()})", opens=[StoreCore])
    store.close()
    StoreCore(path).close()


def test_a_directory_that_does_not_exist(tmp_path):
    refused(str(tmp_path / "no"), "No such file", opens=[StoreView.open])
    StoreCore(str(tmp_path / "a" / "b")).close()
    assert (tmp_path / "a" / "b" / "data.mdb").exists()


def test_an_empty_directory_is_no_store_to_read(tmp_path):
    refused(str(tmp_path), "there is no store", opens=[StoreView.open])
    (tmp_path / "data.mdb").touch()
    refused(str(tmp_path), "there is no store", opens=[StoreView.open])


def test_a_directory_with_other_files(tmp_path):
    (tmp_path / "letters.txt").write_text("mine")
    refused(str(tmp_path), "holds 'letters.txt'", opens=[StoreCore])
    assert [file.name for file in tmp_path.iterdir()] == ["letters.txt"]


def test_a_file_in_place_of_a_directory(tmp_path):
    (tmp_path / "file").write_text("")
    refused(str(tmp_path / "file"), "cannot open the store")


def test_garbage_in_place_of_the_data(path):
    with Path(path, "data.mdb").open("r+b") as file:
        file.write(b"\xa5" * 16384)
    refused(path, "cannot open the store")


def test_another_database(tmp_path):
    with lmdb.open(str(tmp_path), max_dbs=2) as env, env.begin(write=True) as txn:
        txn.put(b"key", b"value", db=env.open_db(b"things", txn))
    refused(str(tmp_path), "not a hub store")


def test_another_format_version(path):
    with lmdb.open(path, max_dbs=8) as env:
        meta = env.open_db(b"meta")
        with env.begin(write=True, db=meta) as txn:
            mark = txn.get(b"format")
            assert mark == b"dataproxy hub store" + struct.pack(">I", 2)
            txn.put(b"format", mark[:-4] + struct.pack(">I", 9))
    refused(path, "format version is 9, not 2")


def test_a_file_that_lost_its_end(path):
    data = Path(path, "data.mdb")
    os.truncate(data, data.stat().st_size // 2)
    refused(path, "shorter than its own header says")


@pytest.mark.parametrize("name", [b"logs", b"streams"])
def test_a_damaged_catalog(path, name):
    with lmdb.open(path, max_dbs=8) as env:
        base = env.open_db(name)
        with env.begin(write=True, db=base) as txn:
            txn.put(struct.pack(">I", 0) + b"g", b"short")
    refused(path, "a row cannot be read", opens=[StoreCore])
    view = StoreView.open(path)
    with pytest.raises(StoreError, match="cannot read the store"):
        view.counts()
    view.close()


def test_a_damaged_entry(path):
    with lmdb.open(path, max_dbs=8) as env:
        base = env.open_db(b"entries")
        with env.begin(write=True, db=base) as txn:
            txn.put(struct.pack(">IQ", 0, 3), b"\xff" * 50)
    store = StoreCore(path, retention_ms=1)
    assert len(store.read("g", 0, 0, max_entries=3)) == 3
    assert len(store.read("g", 0, 0)) == 3  # what is before it, first
    with pytest.raises(StoreError, match="entry 3 of 'g'") as caught:
        store.read("g", 0, 3)
    assert (caught.value.code, caught.value.details["offset"]) == ("STORE_DAMAGED", 3)
    assert len(store.read("g", 0, 4)) == 96
    assert append_entries(store, [("g", "s", b"still works")]) == [(100, "ok")]
    store.close()


@pytest.mark.parametrize("gone", [[0], [50], [50, 51, 52], [99]])
def test_a_missing_entry(path, gone):
    with lmdb.open(path, max_dbs=8) as env:
        base = env.open_db(b"entries")
        with env.begin(write=True, db=base) as txn:
            for offset in gone:
                assert txn.delete(struct.pack(">IQ", 0, offset))
    view = StoreView.open(path)
    if gone[0]:
        assert len(view.read("g", 0, 0)) == gone[0]  # what is before it, first
    for offset in gone:
        with pytest.raises(StoreError, match=f"entry {offset} of 'g'.*missing") as caught:
            view.read("g", 0, offset)
        assert (caught.value.code, caught.value.details["offset"]) == ("STORE_DAMAGED", offset)
    assert len(view.read("g", 0, gone[-1] + 1)) == 99 - gone[-1]
    view.close()


def change(path, offset, at):
    """Flip a bit of an entry in the way that a disk may: nobody is told."""
    with lmdb.open(path, max_dbs=8) as env:
        base = env.open_db(b"entries")
        with env.begin(write=True, db=base) as txn:
            key = struct.pack(">IQ", 0, offset)
            value = bytearray(txn.get(key))
            value[at] ^= 1
            txn.put(key, bytes(value))


@pytest.mark.parametrize("stream", [None, "s"])
@pytest.mark.parametrize("at", [0, 4, 8, 16, 24, 28, 32, 40, 44, 48, 51, 60, -1])
def test_an_entry_that_is_not_what_was_stored_is_never_given(path, at, stream):
    change(path, 7, at)
    store = StoreCore(path)
    assert [entry[0] for entry in store.read("g", 0, 0, stream=stream)] == list(range(7))
    with pytest.raises(StoreError) as caught:
        store.read("g", 0, 7, stream=stream)
    assert caught.value.code == "STORE_DAMAGED"
    assert caught.value.details["offset"] == 7
    assert "entry 7 of 'g'" in caught.value.message
    assert [entry[0] for entry in store.read("g", 0, 8, stream=stream)] == list(range(8, 100))
    store.close()


def test_an_entry_at_another_place_is_not_what_was_stored_there(path):
    with lmdb.open(path, max_dbs=8) as env:
        base = env.open_db(b"entries")
        with env.begin(write=True, db=base) as txn:
            txn.put(struct.pack(">IQ", 0, 7), txn.get(struct.pack(">IQ", 0, 8)))
    store = StoreCore(path)
    with pytest.raises(StoreError, match="checksum"):
        store.read("g", 0, 7)
    store.close()


@pytest.mark.parametrize("name", [b"logs", b"streams"])
def test_a_count_that_is_not_what_was_stored(path, name):
    with lmdb.open(path, max_dbs=8) as env:
        base = env.open_db(name)
        with env.begin(write=True, db=base) as txn:
            [(key, value)] = txn.cursor()
            txn.put(key, value[:12] + bytes([value[12] ^ 1]) + value[13:])
    refused(path, "a row cannot be read", opens=[StoreCore])


@pytest.mark.parametrize("at", [8, None])
def test_retention_goes_on_behind_an_entry_that_cannot_be_read(path, at):
    if at is None:
        with lmdb.open(path, max_dbs=8) as env:
            base = env.open_db(b"entries")
            with env.begin(write=True, db=base) as txn:
                assert txn.delete(struct.pack(">IQ", 0, 50))
    else:
        change(path, 50, at)
    store = StoreCore(path, retention_ms=1000)
    now = 10**9
    while retain_once(store, now):
        pass
    assert store.logs()[0][2] == 50  # its age is not known: it is kept for one
    while retain_once(store, now + 1001):
        pass
    assert store.logs() == [("g", 0, 100, 100, 0, 0, 0)]
    assert store.counts() == {("g", "s"): (0, 0, 0)}
    assert store.stats()["damaged_entries"] == 1
    store.close()
