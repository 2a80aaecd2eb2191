"""The search for damage in a store that no hub has open."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dataproxy._core.server.store.view import STORE_FORMAT, checksum
from dataproxy.errors import StoreError
from dataproxy.hub.reading.pages import PageFile, Tree

__all__ = ["CHECKED_PAGES", "Damage", "StoreReport", "check_pages", "verify_store"]

_MARK: Final = b"dataproxy hub store"
_DAMAGE_MOST: Final = 1000
#: Pages (512 MiB) that are read when a hub opens a store; after that, only branches of its trees are read.
CHECKED_PAGES: Final = 1 << 17
_STREAM_COUNTED: Final = 12  # bytes of a stream's row up to the count of its entries
_LATER: Final = {"blocks", "offsets"}  # trees that a store has only after a hub of this release has opened it
_FIXED: Final = 48  # bytes of a queue header before its texts


@dataclass(frozen=True, slots=True)
class Damage:
    """Hold one finding: where the damage is, and what is wrong."""

    where: str
    what: str


@dataclass(slots=True)
class StoreReport:
    """Hold the results of a check; ``damage`` has the first thousand findings, ``damages`` counts all."""

    path: str
    pages: int = 0
    logs: int = 0
    streams: int = 0
    entries: int = 0
    records: int = 0
    bytes: int = 0
    ids: int = 0
    row_blocks: int = 0
    group_offsets: int = 0
    damages: int = 0
    damage: list[Damage] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Tell whether nothing is damaged."""
        return self.damages == 0

    def note(self, where: str, what: str) -> None:
        """Add a finding."""
        self.damages += 1
        if len(self.damage) < _DAMAGE_MOST:
            self.damage.append(Damage(where, what))


def verify_store(
    path: str | os.PathLike[str], progress: Callable[[int, int], None] = lambda _done, _all: None
) -> StoreReport:
    """Compare every page, row and entry of a store with its checksums and counts, and return the findings.

    ``progress`` is called at times with the number of pages that were checked and the number of all pages.  Nothing is
    changed.  Raises StoreError if there is no store, a hub has it open, or it cannot be read.
    """
    path = os.fspath(path)
    report = StoreReport(path)
    try:
        with _held(path), _opened(Path(path, "data.mdb"), report, progress) as file:
            _Check(file, report).run()
            report.pages = file.pages
    except OSError as error:
        raise StoreError(
            f"cannot verify the store {path!r}: {error.strerror}",
            hint="give the directory of a hub store that can be read",
            details={"path": path, "error": error.errno},
        ) from error
    return report


def check_pages(path: str, *, to_read: bool = False) -> None:
    """Check that the library can follow the pages of a store, before it maps them; reads a bounded number of pages.

    Ignores a directory without a store, a store that a hub has open, and a store that cannot be read: opening it raises
    these errors.  ``to_read`` does not lock the store against hubs; if a hub commits during the check, its result is
    ignored, because the hub has checked the store itself.  Raises StoreError for damage.
    """
    found: list[tuple[str, str]] = []
    name = Path(path, "data.mdb")
    try:
        if not name.is_file() or not name.stat().st_size:
            return
        with (
            contextlib.nullcontext() if to_read else _held(path),
            contextlib.closing(
                PageFile(str(name), lambda where, what: found.append((where, what)), lambda _done, _all: None)
            ) as file,
        ):
            top = file.open()
            # The library uses the newer of two meta pages; a loss of power may leave any state in the other one.
            found = [one for one in found if not one[1].endswith(("belong there", "follow each other"))]
            if top is None and all(what == "it is none of this library" for _, what in found):
                return  # the library reports this itself
            trees = {} if top is None or found else file.trees(top)
            found += _follow(file, trees)
            if to_read and file.moved():
                return
    except (OSError, StoreError):
        return
    if found:
        where, what = found[0]
        raise StoreError(
            f"cannot open the store {path!r}: its pages are damaged ({where}: {what})",
            code="STORE_DAMAGED",
            hint="`dataproxy store verify` lists the damage; restore the directory from a copy, or move it away and"
            " start with an empty one",
            details={"path": path, "where": where, "damages": len(found)},
        )


def _follow(file: PageFile, trees: dict[str, Tree]) -> list[tuple[str, str]]:
    """Walk through the trees, the catalog first; return where the index and the catalog count different entries.

    Readers of a stream use the index, and would miss entries that are not in it.
    """
    said: Counter[bytes] = Counter()  # entries by the catalog; keys are the numbers of log and stream
    there: Counter[bytes] = Counter()
    for tree in sorted(trees.values(), key=lambda tree: tree.leaves + tree.overflows):
        for key, value in file.scan(tree, CHECKED_PAGES):
            if tree.name == "streams" and len(value) >= _STREAM_COUNTED:
                said[key[:4] + value[:4]] = int.from_bytes(value[4:_STREAM_COUNTED], "big")
            elif tree.name == "index":
                there[key[:8]] += 1
    if file.pages >= CHECKED_PAGES:  # not all leaves were read
        return []
    return [
        ("index", f"{there[place]} entries are named, {said[place]} should be (log and stream {place.hex()})")
        for place in sorted(said | there)
        if there[place] != said[place]
    ]


@contextmanager
def _opened(path: Path, report: StoreReport, progress: Callable[[int, int], None]) -> Iterator[PageFile]:
    file = PageFile(str(path), report.note, progress)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def _held(path: str) -> Iterator[None]:
    """Lock the store against hubs for the time of a ``with`` block.  Raises StoreError, OSError."""
    held = []
    try:
        for name in (path, os.path.join(path, "writer.lock")):  # noqa: PTH118
            if not os.path.exists(name) and name != path:  # noqa: PTH110
                continue
            held.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
            try:
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StoreError(
                    f"the store {path!r} is in use by a hub",
                    code="STORE_TAKEN",
                    hint="stop the hub, or verify a copy of the directory",
                    details={"path": path},
                ) from error
        yield
    finally:
        for fd in held:
            os.close(fd)


@dataclass(slots=True)
class _Counts:
    """Count the entries that were found of a log, or of one of its streams."""

    entries: int = 0
    records: int = 0
    bytes: int = 0
    first: int = -1
    last: int = -1

    def add(self, offset: int, records: int, size: int) -> None:
        self.entries += 1
        self.records += records
        self.bytes += size
        self.first = offset if self.first < 0 else self.first
        self.last = offset

    def numbers(self) -> tuple[int, int, int]:
        return self.entries, self.records, self.bytes


class _Check:
    """Compare the rows of a store with one another."""

    def __init__(self, file: PageFile, report: StoreReport) -> None:
        self._file = file
        self._report = report
        self._log_rows: dict[int, tuple[str, int, int, tuple[int, int, int]]] = {}  # name, first, next, counts
        self._stream_rows: dict[tuple[int, int], tuple[str, tuple[int, int, int]]] = {}
        self._in_logs: dict[int, _Counts] = defaultdict(_Counts)
        self._in_streams: dict[tuple[int, int], _Counts] = defaultdict(_Counts)
        self._offsets: dict[tuple[int, int], int] = defaultdict(int)  # sum over the hashes of a stream's entries ...
        self._indexed: dict[tuple[int, int], int] = defaultdict(int)  # ... and of its index
        self._next_id = -1
        self._next_block = -1

    def run(self) -> None:
        """Check all rows and compare the counts."""
        look = {
            "meta": self._meta,
            "logs": self._log,
            "streams": self._stream,
            "entries": self._entry,
            "index": self._index,
            "ids": self._ids,
            "blocks": self._block,
            "offsets": self._group_offset,
        }
        top = self._file.open()
        trees = {} if top is None else self._file.trees(top)
        for name, act in look.items():
            if name not in trees:
                if name not in _LATER:
                    self._report.note(name, "it is missing")
                continue
            for key, value in self._file.rows(trees[name]):
                act(key, value)
        self._compare()

    def _fits(self, where: str, key: bytes, value: bytes, size: int) -> bool:
        if len(value) == size and int.from_bytes(value[-4:], "big") == checksum(value[:-4], checksum(key)):
            return True
        self._report.note(where, f"the row {key.hex()} is not what was stored")
        return False

    def _meta(self, key: bytes, value: bytes) -> None:
        if key == b"format":
            if value != _MARK + struct.pack(">I", STORE_FORMAT):
                self._report.note("meta", "the format is not that of this release")
        elif key != b"ids key":
            self._fits("meta", key, value, len(value))

    def _log(self, key: bytes, value: bytes) -> None:
        if not self._fits("logs", key, value, 48):
            return
        number, first, following, *counts = struct.unpack(">IQQQQQ", value[:44])
        name = f"{key[4:].decode('utf-8', 'replace')!r} (partition {int.from_bytes(key[:4], 'big')})"
        self._log_rows[number] = name, first, following, (counts[0], counts[1], counts[2])
        self._report.logs += 1

    def _stream(self, key: bytes, value: bytes) -> None:
        if not self._fits("streams", key, value, 32):
            return
        number, *counts = struct.unpack(">IQQQ", value[:28])
        place = int.from_bytes(key[:4], "big"), number
        self._stream_rows[place] = repr(key[4:].decode("utf-8", "replace")), (counts[0], counts[1], counts[2])
        self._report.streams += 1

    def _entry(self, key: bytes, value: bytes) -> None:
        if len(key) != 12:
            self._report.note("entries", f"the key {key.hex()} is none")
            return
        log, offset = struct.unpack(">IQ", key)
        counts = self._in_logs[log]
        head = int.from_bytes(value[4:6], "big")
        if (
            not _FIXED + 2 <= head <= len(value)
            or value[0] != 2
            or int.from_bytes(value[44:48], "big") != checksum(value[48:head], checksum(value[:44], checksum(key)))
        ):
            self._report.note(self._named(log), f"entry {offset} is not what was stored")
            return
        if int.from_bytes(value[40:44], "big") != checksum(value[head:]):
            self._report.note(self._named(log), f"the data of entry {offset} are not what was stored")
        records, stream = struct.unpack_from(">II", value, 24)
        counts.add(offset, records, len(value))
        self._in_streams[log, stream].add(offset, records, len(value))
        self._offsets[log, stream] += hash((offset, 1))
        self._report.entries += 1
        self._report.records += records
        self._report.bytes += len(value)

    def _index(self, key: bytes, value: bytes) -> None:
        if len(key) != 16 or value:
            self._report.note("index", f"the row {key.hex()} is none")
            return
        log, stream, offset = struct.unpack(">IIQ", key)
        self._indexed[log, stream] += hash((offset, 1))

    def _ids(self, key: bytes, value: bytes) -> None:
        if not self._fits("ids", key, value, len(value)):
            return
        position, n = int.from_bytes(key, "big"), (len(value) - 12) // 24
        if self._next_id not in (-1, position):
            self._report.note("ids", f"position {position} follows where {self._next_id} should")
        self._next_id = position + n
        self._report.ids += n

    def _block(self, key: bytes, value: bytes) -> None:
        if not self._fits("blocks", key, value, 60):
            return
        position = int.from_bytes(key, "big")
        if self._next_block not in (-1, position):
            self._report.note("blocks", f"position {position} follows where {self._next_block} should")
        self._next_block = position + 1
        self._report.row_blocks += 1

    def _group_offset(self, key: bytes, value: bytes) -> None:
        if not self._fits("offsets", key, value, len(value)):
            return
        topic, group = struct.unpack_from(">HH", value, 20)
        if len(value) != 24 + topic + group + 4:
            self._report.note("offsets", f"the row {key.hex()} has texts of another size")
        self._report.group_offsets += 1

    def _named(self, log: int) -> str:
        row = self._log_rows.get(log)
        return f"log {log}" if row is None else row[0]

    def _compare(self) -> None:
        """Compare the counts of the catalog with the rows that were found."""
        for log in sorted({*self._log_rows, *self._in_logs}):
            counts = self._in_logs[log]
            if log not in self._log_rows:
                self._report.note(f"log {log}", f"{counts.entries} entries are there, and no row of the log")
                continue
            name, first, following, said = self._log_rows[log]
            if said != counts.numbers():
                self._report.note(name, f"{counts.numbers()} entries, records and bytes are there, {said} should be")
            if counts.entries and (counts.first < first or counts.last >= following):
                span = f"{counts.first} to {counts.last}"
                self._report.note(name, f"offsets {span} are there, {first} to {following - 1} should be")
        for place in sorted({*self._stream_rows, *self._in_streams, *self._indexed}):
            named, said = self._stream_rows.get(place, (f"number {place[1]}", (0, 0, 0)))
            where = f"{self._named(place[0])}, stream {named}"
            counts = self._in_streams[place]
            if said != counts.numbers():
                self._report.note(where, f"{counts.numbers()} entries, records and bytes are there, {said} should be")
            if self._offsets[place] != self._indexed[place]:
                self._report.note(where, "its index does not name its entries")
