"""A hub on a store whose pages have flipped bits refuses it or gives what was stored: no flip ends its process."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import lmdb
import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy.errors import StoreError
from dataproxy.hub import Hub
from dataproxy.hub.reading import verify
from tests.native.probe_feed import append_entries
from tests.unit.server.store.test_verify import make

ROOT = Path(__file__).parents[2]
PAGE = 4096
BRANCH, LEAF, OVERFLOW, META = 1, 2, 4, 8
FLIPS = 60  # of each class of pages
#: Opens each store and reads all of it; a line for each, "refused", "damaged" or the bodies' digest.
READER = """
import hashlib, sys
from dataproxy.errors import StoreError
from dataproxy.hub import Hub
for path in sys.argv[1:]:
    said = "refused"
    try:
        with Hub(path, port=0, manager_port=0, dedupe="ids") as hub:
            said = "damaged"
            bodies = [record.body for group in ("g0", "g1", "g2") for record in hub.records(group)]
            hub.counts()
            said = hashlib.sha256(b"".join(bodies)).hexdigest()
    except StoreError as error:
        assert error.code == "STORE_DAMAGED" or said == "refused", error
    print(said, flush=True)
"""


#: The same for readers beside no hub, stream by stream, as the index leads them.
STREAMS = """
import hashlib, sys
from dataproxy.errors import StoreError
from dataproxy.hub import open_store
names = None
for path in sys.argv[1:]:
    said = "refused"
    try:
        with open_store(path) as store:
            said = "damaged"
            names = names or sorted(name for name in store.counts() if name[0] in ("g0", "g1", "g2"))
            bodies = [record.body for group, stream in names for record in store.records(group, stream)]
            said = hashlib.sha256(b"".join(bodies)).hexdigest()
    except StoreError as error:
        assert error.code == "STORE_DAMAGED" or said == "refused", error
    print(said, flush=True)
"""


def read(*paths: Path, reader: str = READER) -> list[str]:
    """Return what a process of its own says of stores."""
    done = subprocess.run([sys.executable, "-c", reader, *map(str, paths)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.returncode} at store {len(done.stdout.split())}: {done.stderr[-2000:]}"
    return done.stdout.split()


def places(data: bytes) -> dict[str, list[tuple[int, int]]]:
    """Return where the pages of each class are that are in use or free: (place, bytes that matter)."""
    found: dict[str, list[tuple[int, int]]] = {"meta": [], "branch": [], "leaf": [], "overflow": []}
    at = 0
    while at < len(data):
        number, _, flags, lower, _ = struct.unpack_from("<QHHHH", data, at)
        pages = 1
        for name, flag in {"meta": META, "branch": BRANCH, "leaf": LEAF, "overflow": OVERFLOW}.items():
            if flags & flag and number == at // PAGE:
                found[name].append((at, 152 if flag == META else 16 if flag == OVERFLOW else max(lower, 16)))
                pages = struct.unpack_from("<I", data, at + 12)[0] if flag == OVERFLOW else 1
        at += PAGE * max(1, pages)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(make(tmp_path_factory.mktemp("made") / "store"))
    store = StoreCore(str(path))
    for first in range(0, 3000, 500):  # so many names that their trees have branches
        append_entries(store, [(f"name{n}", f"stream{n}", b"x") for n in range(first, first + 500)])
    store.close()
    return path


@pytest.mark.parametrize("reader", [READER, STREAMS], ids=["hub", "reader"])
@pytest.mark.parametrize("kind", ["meta", "branch", "leaf", "overflow"])
def test_a_flipped_bit_ends_nobody_and_is_told(made: Path, tmp_path: Path, kind: str, reader: str) -> None:
    rng = random.Random(kind)
    whole = (made / "data.mdb").read_bytes()
    stores = []
    for n in range(FLIPS):
        data = bytearray(whole)
        at, size = rng.choice(places(whole)[kind])
        data[at + rng.randrange(size)] ^= 1 << rng.randrange(8)
        stores.append(shutil.copytree(made, tmp_path / str(n)))
        (stores[-1] / "data.mdb").write_bytes(data)
    right, *said = read(made, *stores, reader=reader)
    assert len(said) == FLIPS
    assert set(said) <= {"refused", "damaged", right}
    if kind == "overflow":
        assert "refused" in said


@pytest.mark.parametrize("change", ["gone", "another stream", "another offset"])
def test_a_reader_of_a_stream_is_told_of_a_damaged_index(made: Path, tmp_path: Path, change: str) -> None:
    store = shutil.copytree(made, tmp_path / "store")
    with lmdb.open(str(store), max_dbs=8) as env:
        base = env.open_db(b"index")
        with env.begin(write=True, db=base) as txn:
            keys = [struct.unpack(">IIQ", key) for key in txn.cursor().iternext(values=False)]
            of_first_log = [key for key in keys if key[0] == 0]
            log, stream, offset = of_first_log[len(of_first_log) // 2]
            txn.delete(struct.pack(">IIQ", log, stream, offset))
            if change == "another stream":
                txn.put(struct.pack(">IIQ", log, stream + 1_000_000, offset), b"")
            elif change == "another offset":
                free = next(k for k in range(10**6) if (log, stream, k) not in keys)
                txn.put(struct.pack(">IIQ", log, stream, free), b"")
    right, said = read(made, store, reader=STREAMS)
    assert said in ("refused", "damaged")
    assert said != right


def test_a_store_that_a_hub_writes_is_no_damaged_one(made: Path, tmp_path: Path) -> None:
    """Pages that a reader looks at may be used again meanwhile: then the writer's look holds."""
    path = shutil.copytree(made, tmp_path / "store")
    store, done = StoreCore(str(path)), threading.Event()

    def write() -> None:
        while not done.is_set():
            append_entries(store, [("name1", "stream1", b"y" * 9000)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            verify.check_pages(str(path), to_read=True)
    finally:
        done.set()
        writer.join()
        store.close()


def test_one_meta_page_of_another_state_is_no_damage(made: Path, tmp_path: Path) -> None:
    """What a loss of power leaves of a commit: the library takes the other one."""
    store = shutil.copytree(made, tmp_path / "store")
    data = bytearray((store / "data.mdb").read_bytes())
    older = min((0, 1), key=lambda n: struct.unpack_from("<Q", data, n * PAGE + 144)[0])
    data[older * PAGE + 144 : older * PAGE + 152] = bytes(8)
    (store / "data.mdb").write_bytes(data)
    verify.check_pages(str(store))
    assert read(store) == read(made)
    data[older * PAGE + 43] ^= 2  # the library would take pages of another size
    (store / "data.mdb").write_bytes(data)
    assert read(store) == ["refused"]


def test_it_says_where_and_what_to_do(made: Path, tmp_path: Path) -> None:
    store = shutil.copytree(made, tmp_path / "store")
    data = bytearray((store / "data.mdb").read_bytes())
    for at, _ in places(bytes(data))["leaf"]:
        data[at + 10] ^= 0xFF
    (store / "data.mdb").write_bytes(data)
    with pytest.raises(StoreError, match=r"page \d+ is damaged") as raised:
        Hub(store, port=0, manager_port=0)
    assert (raised.value.code, "store verify" in str(raised.value)) == ("STORE_DAMAGED", True)


def test_large_stores_have_their_branches_looked_at(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaves behind the first pages are not read."""
    store = shutil.copytree(made, tmp_path / "store")
    monkeypatch.setattr(verify, "CHECKED_PAGES", 0)
    verify.check_pages(str(store))
    data = bytearray((store / "data.mdb").read_bytes())
    for at, _ in places(bytes(data))["branch"]:
        data[at + 10] ^= 0xFF
    (store / "data.mdb").write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"):
        verify.check_pages(str(store))
