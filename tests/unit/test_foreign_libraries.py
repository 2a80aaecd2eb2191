"""Other copies of snappy and LMDB in the process: of pyarrow, of Debian, of the package ``lmdb``, and hostile ones."""

import subprocess
import sys
from pathlib import Path

import dataproxy

CORE = Path(dataproxy.__file__).parent / "_core"
# Stores a record, and packs and unpacks a block.
WORK = """
import sys, tempfile
from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
from tests.native.probe_wire import pack, unpack
with tempfile.TemporaryDirectory() as folder:
    store = StoreCore(folder + "/store")
    assert append_entries(store, [("g", "s", b"x")]) == [(0, "ok")]
    store.close()
    if "lmdb" in sys.modules:  # which reads what was written
        with sys.modules["lmdb"].open(folder + "/store", readonly=True, max_dbs=16) as other:
            assert other.stat()["entries"] > 0
assert unpack(pack(b"abc" * 1000), 3000) == b"abc" * 1000
print("worked")
"""
HOSTILE = "".join(
    f"void {name}(void) {{ __builtin_trap(); }}\n"
    for name in ("mdb_env_create", "mdb_env_open", "mdb_txn_begin", "mdb_put", "mdb_txn_commit", "snappy_compress")
)


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stdout) == (0, "worked\n"), done.stderr


def test_beside_the_copies_of_other_packages():
    """Before ours, and in the scope of the whole process."""
    before = (
        "import ctypes, contextlib, os, sys\n"
        "sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)\n"
        "import lmdb, pyarrow\n"
        "for name in ('libsnappy.so.1', 'liblmdb.so.0'):\n"
        "    with contextlib.suppress(OSError):\n"
        "        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)\n"
        "sys.setdlopenflags(os.RTLD_NOW)\n"
    )
    run(before + WORK)


def test_a_wheels_libraries_are_bound_to_nobody_elses(tmp_path):
    """In a wheel for old systems the names are its own; modules that link the system's library take who comes first."""
    own = [b"dataproxy_mdb_env_create" in path.read_bytes() for path in CORE.glob("server/store/env.*.so")]
    before = ""
    if own == [True]:
        (tmp_path / "hostile.c").write_text(HOSTILE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "hostile.so", tmp_path / "hostile.c"], check=True)
        before = f"import ctypes; ctypes.CDLL({str(tmp_path / 'hostile.so')!r}, mode=ctypes.RTLD_GLOBAL)\n"
    run(before + WORK)
