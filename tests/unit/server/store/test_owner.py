"""A store belongs to one writer: whoever else writes to it, or takes its files away, ends the acks of the first."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy.errors import StoreError
from tests.native.probe_feed import append_entries, retain_once

ENTRY = [("g", "s", b"x")]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "store")


@pytest.fixture
def store(path):
    made = StoreCore(path)
    assert append_entries(made, ENTRY) == [(0, "ok")]
    yield made
    made.close()


def refuses(store, text):
    for _ in range(2):
        assert append_entries(store, ENTRY)[0][1] == "store error"
    assert text in store.stats()["trouble"]
    assert retain_once(store, 0) == 0
    assert text in store.stats()["trouble"]


@pytest.mark.parametrize("name", ["data.mdb", "lock.mdb", "writer.lock"])
def test_a_file_that_was_removed_ends_the_acks(store, path, name):
    Path(path, name).unlink()
    refuses(store, "removed or replaced")


@pytest.mark.parametrize("name", ["data.mdb", "lock.mdb", "writer.lock"])
def test_a_file_that_was_replaced_ends_the_acks(store, path, name):
    shutil.copy(Path(path, name), Path(path, "copy"))
    Path(path, "copy").replace(Path(path, name))
    refuses(store, "removed or replaced")


def test_a_directory_that_was_removed_ends_the_acks(store, path):
    shutil.rmtree(path)
    refuses(store, "removed or replaced")
    assert not Path(path).exists()


def test_a_directory_that_was_replaced_ends_the_acks_and_is_left_alone(store, path):
    Path(path).rename(path + ".old")
    second = StoreCore(path)
    assert append_entries(second, ENTRY) == [(0, "ok")]
    refuses(store, "removed or replaced")
    assert append_entries(second, ENTRY) == [(1, "ok")]
    second.close()


def test_a_directory_that_comes_back_goes_on(store, path):
    Path(path).rename(path + ".old")
    assert append_entries(store, ENTRY)[0][1] == "store error"
    Path(path + ".old").rename(path)
    assert append_entries(store, ENTRY) == [(1, "ok")]
    assert store.stats()["trouble"] == ""


def test_without_its_lock_file_a_store_is_not_given_to_a_second_writer(store, path):
    Path(path, "writer.lock").unlink()
    with pytest.raises(StoreError, match="in use by another hub") as caught:
        StoreCore(path)
    assert caught.value.code == "STORE_TAKEN"


def test_what_somebody_else_has_written_is_not_overwritten(store, path):
    code = """
import lmdb, struct, sys
with lmdb.open(sys.argv[1], max_dbs=8) as env, env.begin(write=True) as txn:
    txn.put(struct.pack(">IQ", 0, 1), b"theirs", db=env.open_db(b"entries", txn))
"""
    subprocess.run([sys.executable, "-c", code, path], check=True)
    refuses(store, "another process has written to it")
    store.close()
    del store


def test_a_commit_that_does_not_change_anything_is_no_other_writer(path):
    store = StoreCore(path, dedupe_ids=10)
    for _ in range(3):  # known ones are not stored again, and the library gives no number to an empty commit
        append_entries(store, ENTRY)
    assert append_entries(store, [("h", "s", b"y")]) == [(0, "ok")]
    store.close()


def test_a_forked_child_does_not_keep_the_directory(path):
    code = """
import os, signal, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
store = StoreCore(sys.argv[1])
append_entries(store, [("g", "s", b"x")])
if os.fork() == 0:
    print(os.getpid(), flush=True)
    signal.pause()
os._exit(0)
"""
    process = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    assert process.wait() == 0
    try:
        store = StoreCore(path)
        assert append_entries(store, ENTRY) == [(1, "ok")]
        store.close()
    finally:
        os.kill(child, 9)
        process.stdout.close()
