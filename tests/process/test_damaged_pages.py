"""A hub on a store whose pages have flipped bits refuses it or gives what was stored: no flip ends its process."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from dataproxy._core.hub.storecore import StoreCore
from dataproxy.errors import StoreError
from dataproxy.hub import Hub, verify
from tests.unit.hub_store.test_verify import make

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


def read(*paths: Path) -> list[str]:
    """Return what a process of its own says of stores."""
    done = subprocess.run([sys.executable, "-c", READER, *map(str, paths)], cwd=ROOT, capture_output=True, text=True)
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
        store.append_for_test([(f"name{n}", f"stream{n}", b"x") for n in range(first, first + 500)])
    store.close()
    return path


@pytest.mark.parametrize("kind", ["meta", "branch", "leaf", "overflow"])
def test_no_flipped_bit_ends_a_hub(made: Path, tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    whole = (made / "data.mdb").read_bytes()
    stores = []
    for n in range(FLIPS):
        data = bytearray(whole)
        at, size = rng.choice(places(whole)[kind])
        data[at + rng.randrange(size)] ^= 1 << rng.randrange(8)
        stores.append(shutil.copytree(made, tmp_path / str(n)))
        (stores[-1] / "data.mdb").write_bytes(data)
    said = read(*stores)
    assert len(said) == FLIPS
    if kind == "overflow":
        assert "refused" in said


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
