"""Compare engines for the hub's durable store: bytes per second of synced group commits.

Run ``python benchmarks/store_choice/run.py [directory]``; the directory decides which disk is measured.
Engines take turns within a round, every round starts with fresh files, and the table shows medians of the
rounds beside the raw rate of sequential synced writes of the same size.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

__all__ = ["main"]

COMMIT_BYTES = 4 << 20
ENTRY_BYTES = {"400 KB": 400_000, "300 B": 300}
STREAMS = 16
MAP_BYTES = 1 << 34

Commit = list[tuple[int, int, bytes]]  # offset, stream, value


def commits(entry_bytes: int, count: int) -> Iterator[Commit]:
    """Yield the entries of each commit; the bytes are random, so that no layer can shrink them."""
    pool = os.urandom(COMMIT_BYTES + entry_bytes)
    each = max(1, COMMIT_BYTES // entry_bytes)
    for n in range(count):
        start = n * each
        yield [
            (start + i, (start + i) % STREAMS, pool[i * entry_bytes : i * entry_bytes + entry_bytes])
            for i in range(each)
        ]


def raw(folder: Path, work: list[Commit]) -> Iterator[None]:
    """Write the same bytes to one growing file with fdatasync: the floor."""
    handle = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT)
    for commit in work:
        os.write(handle, b"".join(value for _, _, value in commit))
        os.fdatasync(handle)
        yield
    os.close(handle)


def sqlite(folder: Path, work: list[Commit]) -> Iterator[None]:
    """Use sqlite3: WAL, synchronous=FULL, the stream as an index."""
    base = sqlite3.connect(folder / "base", isolation_level=None)
    base.execute("PRAGMA page_size=4096")
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE entries (position INTEGER PRIMARY KEY, stream INTEGER, value BLOB)")
    base.execute("CREATE INDEX by_stream ON entries (stream, position)")
    for commit in work:
        base.execute("BEGIN")
        base.executemany("INSERT INTO entries VALUES (?, ?, ?)", commit)
        base.execute("COMMIT")
        yield
    base.close()


def _lmdb(folder: Path, work: list[Commit], **flags: bool) -> Iterator[None]:
    env = lmdb.open(str(folder / "env"), map_size=MAP_BYTES, max_dbs=2, **flags)
    entries, index = env.open_db(b"entries"), env.open_db(b"index")
    for commit in work:
        with env.begin(write=True) as txn:
            with txn.cursor(entries) as cursor:
                cursor.putmulti([(struct.pack(">IQ", 0, at), value) for at, _, value in commit])
            with txn.cursor(index) as cursor:
                cursor.putmulti([(struct.pack(">IIQ", 0, stream, at), b"") for at, stream, _ in commit])
        yield
    env.close()


def lmdb_sync(folder: Path, work: list[Commit]) -> Iterator[None]:
    """Use LMDB with fully synced commits."""
    return _lmdb(folder, work)


def lmdb_no_meta(folder: Path, work: list[Commit]) -> Iterator[None]:
    """Use LMDB without the sync of the meta page: a power failure may undo the last commit."""
    return _lmdb(folder, work, metasync=False)


def lmdb_writemap(folder: Path, work: list[Commit]) -> Iterator[None]:
    """Use LMDB with a writable map: a full disk is then a SIGBUS."""
    return _lmdb(folder, work, writemap=True)


def segments(folder: Path, work: list[Commit]) -> Iterator[None]:
    """Append values to a segment file with fdatasync; index and metadata in LMDB, rebuilt after a crash."""
    env = lmdb.open(str(folder / "env"), map_size=MAP_BYTES, sync=False)
    handle = os.open(folder / "segment", os.O_WRONLY | os.O_CREAT)
    place = 0
    for commit in work:
        parts: list[bytes] = []
        rows = []
        for at, stream, value in commit:
            parts += (struct.pack(">IIQ", len(value), stream, at), value)
            rows.append((struct.pack(">IIQ", 0, stream, at), struct.pack(">QI", place, len(value))))
            place += 16 + len(value)
        os.write(handle, b"".join(parts))
        os.fdatasync(handle)
        with env.begin(write=True) as txn, txn.cursor() as cursor:
            cursor.putmulti(rows)
        yield
    os.close(handle)
    env.close()


def native(folder: Path, work: list[Commit]) -> Iterator[None]:
    """Use the hub's own store: LMDB through its C interface, indexes and counts kept."""
    from dataproxy._core.server.store.core import StoreCore
    from tests.native.probe_feed import append_entries

    store = StoreCore(str(folder / "store"))
    for commit in work:
        append_entries(store, [("group", f"stream{stream}", value) for _, stream, value in commit])
        yield
    store.close()


ENGINES: dict[str, Callable[[Path, list[Commit]], Iterator[None]]] = {
    "raw fdatasync": raw,
    "sqlite3 WAL FULL": sqlite,
    "LMDB": lmdb_sync,
    "LMDB NOMETASYNC": lmdb_no_meta,
    "LMDB WRITEMAP": lmdb_writemap,
    "segments + LMDB index": segments,
    "hub store (LMDB, native)": native,
}


def rate(engine: Callable[[Path, list[Commit]], Iterator[None]], work: list[Commit], folder: Path) -> float:
    """Return MB/s of one engine over the commits, the first of which is warm-up."""
    folder.mkdir()
    run = engine(folder, work)
    next(run)
    start = time.perf_counter()
    for _ in range(len(work) - 1):
        next(run)
    seconds = time.perf_counter() - start
    for _ in run:
        pass
    shutil.rmtree(folder)
    os.sync()
    return sum(len(value) for commit in work[1:] for _, _, value in commit) / seconds / 1e6


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", default=".", help="a folder on the disk to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commits", type=int, default=17)
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="store-choice-", dir=options.directory))
    print(f"{'engine':26} {'entries':>8} {'MB/s':>8} {'min':>8} {'max':>8} {'of raw':>7}")
    try:
        for name, size in ENTRY_BYTES.items():
            work = list(commits(size, options.commits))
            found: dict[str, list[float]] = {engine: [] for engine in ENGINES}
            for n in range(options.rounds):
                for label, engine in ENGINES.items():
                    found[label].append(rate(engine, work, base / f"{n}"))
            floor = statistics.median(found["raw fdatasync"])
            for label, rates in found.items():
                middle = statistics.median(rates)
                spread = f"{middle:8.1f} {min(rates):8.1f} {max(rates):8.1f}"
                print(f"{label:26} {name:>8} {spread} {middle / floor:7.2f}", flush=True)
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
