"""A hub process that is killed, a disk that is full, and readers in other processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import StoreError
from tests.native.probe_feed import append_entries, retain_once

ROOT = Path(__file__).parents[2]
BATCH = 50

APPENDER = """
import sys, threading
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
store = StoreCore(sys.argv[1], retention_bytes=int(sys.argv[2]), retain_every_ms=1)
threading.Thread(target=store.run_committer, daemon=True).start()
logs = store.logs()
n = logs[0][3] if logs else 0
while True:
    made = [("g", f"s{i % 7}", b"%d." % i + bytes(i * 37 % 5000)) for i in range(n, n + BATCH)]
    results = append_entries(store, made)
    assert [offset for offset, _ in results] == list(range(n, n + BATCH))
    n += BATCH
    print(n, flush=True)
"""

FULL = """
import resource, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
store = StoreCore(sys.argv[1])
value = b"x" * 300_000
assert append_entries(store, [("g", "s", b"first")]) == [(0, "ok")]
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, hard))
stored = 1
while True:
    results = append_entries(store, [("g", "s", value), ("h", "t", b"beside")])
    if results[0][1] != "ok":
        break
    stored += 1
assert [status for _, status in results] == ["disk full", "disk full"], results
before = (store.logs(), store.counts(), len(store.read("g", 0, 0, max_bytes=1 << 30)))
for _ in range(5):
    assert append_entries(store, [("g", "s", value)])[0][1] == "disk full"
    assert (store.logs(), store.counts(), len(store.read("g", 0, 0, max_bytes=1 << 30))) == before
assert before[2] == stored
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert append_entries(store, [("g", "s", value), ("h", "t", b"z")]) == [(stored, "ok"), (stored - 1, "ok")]
print(store.stats()["failures"], store.stats()["last_error"])
store.close()
store = StoreCore(sys.argv[1])
assert len(store.read("g", 0, 0, max_bytes=1 << 30)) == stored + 1
store.close()
"""


GAP = """
import resource, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
store = StoreCore(sys.argv[1])
assert append_entries(store, [("g", "s", b"first")]) == [(0, "ok")]
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, hard))
assert append_entries(store, [("lost", "s", b"x" * 8_000_000)]) == [(0, "disk full")]
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert append_entries(store, [("h", "s", b"x")]) == [(0, "ok")]
store.close()
del store
again = StoreCore(sys.argv[1])
assert [log[0] for log in again.logs()] == ["g", "h"]
assert append_entries(again, [("lost", "s", b"x"), ("h", "s", b"x")]) == [(0, "ok"), (1, "ok")]
assert retain_once(again, 0) == 0
again.close()
del again
print("closed")
"""


RESTART = """
import resource, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
store = StoreCore(sys.argv[1])
assert append_entries(store, [("g", "s", b"x" * 100_000)]) == [(1, "disk full")]
assert len(store.read("g", 0, 0)) == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert append_entries(store, [("g", "s", b"x" * 100_000)]) == [(1, "ok")]
store.close()
print("closed")
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a Python process on a piece of code."""
    code = f"BATCH = {BATCH}\n{code}"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def append_until(path: str, lines: int, retention_bytes: int = 0) -> int:
    """Let a process append, kill it after so many reports, and return the last offset it reported, plus one."""
    child = start(APPENDER, path, str(retention_bytes))
    reported = 0
    for _ in range(lines):
        reported = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    rest = child.stdout.read().split("\n")
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    # A report cut off by the kill is not one.
    return max([reported, *(int(line) for line in rest[:-1])])


@pytest.mark.parametrize("retention_bytes", [0, 300_000])
def test_what_was_reported_survives_a_kill(tmp_path, retention_bytes):
    path = str(tmp_path / "store")
    for lines in (1, 17, 30):
        reported = append_until(path, lines, retention_bytes)
        store = StoreCore(path)
        [(_, _, first, following, entries, _, size)] = store.logs()
        assert following >= reported
        assert following % BATCH == 0  # a commit is whole or not there
        if retention_bytes == 0:
            assert first == 0
        found = store.read("g", 0, 0, max_entries=1 << 30, max_bytes=1 << 40)
        assert [entry[0] for entry in found] == list(range(first, following))
        assert all(value == b"%d." % offset + bytes(offset * 37 % 5000) for offset, _, value in found)
        assert entries == len(found) == sum(count[0] for count in store.counts().values())
        assert size == sum(count[2] for count in store.counts().values())
        by_stream = [at for i in range(7) for at in store.stream_offsets("g", 0, f"s{i}", 0, 1 << 30)]
        assert sorted(by_stream) == [entry[0] for entry in found]
        more = range(following, following + BATCH)
        made = [("g", f"s{i % 7}", b"%d." % i + bytes(i * 37 % 5000)) for i in more]
        assert append_entries(store, made) == [(i, "ok") for i in more]
        store.close()


def test_a_full_disk_refuses_and_recovers(tmp_path):
    child = start(FULL, str(tmp_path))
    out, _ = child.communicate(timeout=100)
    assert child.returncode == 0
    failures, reason = out.split(None, 1)
    assert failures == "6"
    assert "File too large" in reason


def test_a_log_that_a_full_disk_refused_leaves_a_number_unused(tmp_path):
    child = start(GAP, str(tmp_path))
    out, _ = child.communicate(timeout=100)
    assert (child.returncode, out) == (0, "closed\n")


def test_a_store_opens_on_a_full_disk(tmp_path):
    store = StoreCore(str(tmp_path))
    assert append_entries(store, [("g", "s", b"x")]) == [(0, "ok")]
    store.close()
    del store
    child = start(RESTART, str(tmp_path))
    out, _ = child.communicate(timeout=100)
    assert (child.returncode, out) == (0, "closed\n")


def test_another_process_reads_while_one_appends(tmp_path):
    path = str(tmp_path / "store")
    child = start(APPENDER, path, "0")
    reported = int(child.stdout.readline())
    view = StoreView.open(path)
    place = 0
    while place < 2000:
        found = view.read("g", 0, place)
        if found:
            assert [entry[0] for entry in found] == list(range(place, place + len(found)))
            assert all(value == b"%d." % offset + bytes(offset * 37 % 5000) for offset, _, value in found)
            place += len(found)
        else:
            reported = int(child.stdout.readline())  # wait for more
    assert reported > 0
    with pytest.raises(StoreError, match=f"process {child.pid}"):
        StoreCore(path)
    child.kill()
    child.stdout.close()
    child.wait()
    assert view.logs()[0][3] >= 2000
    view.close()


def test_a_view_is_not_for_a_forked_child(tmp_path):
    code = """
import os, sys
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
from dataproxy.errors import ForkedError
store = StoreCore(sys.argv[1])
append_entries(store, [("g", "s", b"x")])
child = os.fork()
if child == 0:
    try:
        store.read("g", 0, 0)
    except ForkedError:
        store.close()
        del store
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert len(store.read("g", 0, 0)) == 1
append_entries(store, [("g", "s", b"x")])
store.close()
"""
    child = start(code, str(tmp_path))
    child.communicate(timeout=100)
    assert child.returncode == 0


def test_a_killed_reader_keeps_nothing_back(tmp_path):
    opened = "import lmdb, sys\nenv = lmdb.open(sys.argv[1], readonly=True, max_dbs=8)\n"
    store = StoreCore(str(tmp_path))
    append_entries(store, [("g", "s", b"x")])
    reader = start(opened + "txn = env.begin()\nprint(1, flush=True)\nimport signal\nsignal.pause()", str(tmp_path))
    assert reader.stdout.readline() == "1\n"
    listing = opened + "print(env.readers())"
    assert str(reader.pid) in start(listing, str(tmp_path)).communicate(timeout=100)[0]
    reader.kill()
    reader.stdout.close()
    reader.wait()
    assert retain_once(store, 0) == 0
    assert str(reader.pid) not in start(listing, str(tmp_path)).communicate(timeout=100)[0]
    store.close()


def transaction_number(path: Path, store: StoreCore) -> tuple[int, int]:
    """Append an entry and return where in the library's lock file its transaction number is, and the number."""
    before = path.read_bytes()[:256]
    assert append_entries(store, [("g", "s", b"second")]) == [(1, "ok")]
    after = path.read_bytes()[:256]
    [place] = [i for i in range(0, 256, 8) if before[i : i + 8] != after[i : i + 8]]
    return place, int.from_bytes(after[place : place + 8], sys.byteorder)


def test_a_commit_that_its_writer_did_not_live_to_announce_is_there_for_the_next_writer(tmp_path):
    """The library writes a commit to the file, then its number to the lock file: a kill may come between."""
    first = StoreCore(str(tmp_path))
    assert append_entries(first, [("g", "s", b"first")]) == [(0, "ok")]
    lock = tmp_path / "lock.mdb"
    place, number = transaction_number(lock, first)
    first.close()  # its environment stays open with the object, and with it the lock file
    code = f"""
import lmdb, signal, sys
writing = lmdb.open(sys.argv[1], max_dbs=8).begin(write=True)
with open(sys.argv[1] + "/lock.mdb", "r+b") as lock:
    lock.seek({place})
    lock.write(({number} - 1).to_bytes(8, sys.byteorder))
print("holding", flush=True)
signal.pause()
"""
    writer = start(code, str(tmp_path))
    assert writer.stdout.readline() == "holding\n"
    writer.kill()
    writer.stdout.close()
    writer.wait()
    second = StoreCore(str(tmp_path))
    assert append_entries(second, [("g", "s", b"third")]) == [(2, "ok")]
    assert [(offset, value) for offset, _, value in second.read("g", 0, 0)] == [
        (0, b"first"),
        (1, b"second"),
        (2, b"third"),
    ]
    second.close()
