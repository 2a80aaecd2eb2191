"""A disk that fails for a while: a refused commit leaves nothing, and the store goes on as soon as the disk does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaigns.preload import build_preload
from tests.process.programs import ROOT

APPENDS = """
import ctypes, json, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
from dataproxy._core.wire.inlong import message

disk_fails = ctypes.CDLL(None).disk_fails
disk_fails.argtypes, disk_fails.restype = [ctypes.c_long, ctypes.c_long], ctypes.c_long
store = StoreCore(sys.argv[1], dedupe_ids=int(sys.argv[2]))
sent, rows, acked = 0, [], []
for passing in range(5):
    for failing in (1, 2, 3, 4):
        before = disk_fails(passing, failing)
        said = []
        while said[-2:] != ["ok", "ok"] and len(said) < 40:
            value = message.encode(4, [({"groupId": "g", "streamId": "s", "sid": f"p{sent}"}, [b"%d" % sent])])
            [(offset, status)] = append_entries(store, [("g", "s", value)])
            said.append(status)
            if status == "ok":
                acked.append([offset, sent])
            sent += 1
        rows.append([passing, failing, disk_fails(0, 0) - before, said])
kept = [[entry[0], int(next(message.records(entry[2]))[0])] for entry in store.read("g", 0, 0, max_entries=1000)]
store.close()
print(json.dumps([rows, acked, kept]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_preload(Path(__file__).with_name("bad_disk.c"), tmp_path_factory.mktemp("preload"))


def run(library, code, *arguments):
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("ids", [0, 1000], ids=["plain", "dedupe"])
def test_a_store_goes_on_when_its_disk_does(library, tmp_path, ids):
    rows, acked, kept = run(library, APPENDS, str(tmp_path), str(ids))
    assert kept == acked  # what was refused is not there
    for passing, failing, failed, said in rows:
        assert failed == failing, (passing, failing, said)
        assert said[-2:] == ["ok", "ok"], (passing, failing, said)
        assert 1 <= said.count("store error") <= failing, (passing, failing, said)


READERS = """
import lmdb, sys, threading
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import StoreError
import subprocess
store = StoreCore(sys.argv[1], retention_ms=100)
append_entries(store, [("g", "s", b"x")] * 3, receive_ms=0)
hold = '''
import lmdb, sys
env = lmdb.open(sys.argv[1], readonly=True, max_dbs=8)
held = []
try:
    while True:
        held.append(env.begin())
except lmdb.ReadersFullError:
    print(len(held), flush=True)
sys.stdin.read()
'''
child = subprocess.Popen([sys.executable, "-c", hold, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert int(child.stdout.readline()) > 100
try:
    store.read("g", 0, 0)
except StoreError as error:
    assert (error.code, error.retriable) == ("STORE_READERS", True), error
else:
    raise AssertionError("there was a reader's place")
assert append_entries(store, [("g", "s", b"y")], receive_ms=1000) == [(3, "ok")]
assert retain_once(store, 1000) == 3             # retention needs no place
store.close()
del store
StoreCore(sys.argv[1], dedupe_ids=100).close()      # neither does a start, with the window of ids
again = StoreCore(sys.argv[1])                      # or without
assert append_entries(again, [("g", "s", b"z")]) == [(4, "ok")]
child.communicate()
assert [entry[2] for entry in again.read("g", 0, 0)] == [b"y", b"z"]
again.close()
print("true")
"""


def test_readers_places_that_others_took_stop_nothing_but_reads(library, tmp_path):
    assert run(library, READERS, str(tmp_path)) is True


NO_ROOM = """
import ctypes, json, os, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import StoreError
libc = ctypes.CDLL(None)
store = StoreCore(sys.argv[1])
append_entries(store, [("g", "s", b"x")])
store.close()
del store
os.unlink(sys.argv[1] + "/lock.mdb")
os.unlink(sys.argv[1] + "/reserve")
libc.disk_is_full(1)
said = []
for call in (StoreCore, StoreView.open):
    try:
        call(sys.argv[1])
    except StoreError as error:
        said.append(error.code)
libc.disk_is_full(0)
store = StoreCore(sys.argv[1])
said.append(len(store.read("g", 0, 0)))
store.close()
print(json.dumps(said))
"""


def test_without_room_for_the_lock_file_a_store_is_refused(library, tmp_path):
    """The library would write to a file without blocks as memory, which ends the process."""
    assert run(library, NO_ROOM, str(tmp_path)) == ["DISK_FULL", "DISK_FULL", 1]


SYNCED = """
import ctypes, json, os, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
libc = ctypes.CDLL(None)
libc.synced.restype = ctypes.c_char_p
StoreCore(sys.argv[1] + "/a/store").close()
print(json.dumps(libc.synced().decode().split()))
"""


def test_directories_are_synced_when_files_were_made_in_them(library, tmp_path):
    synced = run(library, SYNCED, str(tmp_path))
    assert {str(tmp_path), f"{tmp_path}/a", f"{tmp_path}/a/store"} <= set(synced)
