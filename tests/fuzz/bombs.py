"""Fuzz target: requests of few bytes that are many records with long attributes, read in pages and in runs.

The input chooses how many, how long, which of them have attributes of their own, and how a page is bounded.
"""

import tracemalloc
from collections import deque

from dataproxy._core.base.column import Bytes
from dataproxy.hub.reading.records import records_of
from dataproxy.hub.web.pages.records import Place, read_page
from dataproxy.stored.entry import StoredEntry
from tests.campaigns.hostile import binary
from tests.fuzz.engine import main
from tests.native.probe_wire import Server, pack
from tests.support.reference import containers

__all__ = ["SEEDS", "check"]

SERVERS = [Server(compress_entries=False), Server(compress_entries=True)]
SEEDS = [
    bytes(8),
    b"\xff" * 8,
    bytes(range(8)),
    b"\x40\x20\x01\x00\xff\x10\x00\x00",
    b"\xc0\x7f\x07\x01\x20\x01\x01\x00",
]
MOST_RECORDS, MOST_ATTRIBUTES = 512, 8192
#: What objects of one record, of a page's rows and of the interpreter take besides their texts.
ROOM = 1 << 20


def check(data: bytes) -> None:
    """Read a bomb in pages, which are bounded and together the whole of it."""
    chosen = data[:8].ljust(8, b"\0")
    count, own = 1 + chosen[0] * MOST_RECORDS // 256, chosen[2]
    names = b"&".join(b"%x=%x" % (n, n) for n in range(chosen[1] * MOST_ATTRIBUTES // 256 // 8))
    attrs = b"groupId=bomb&streamId=s" + b"&" * bool(names) + names
    items = [(b"x" * (n % (1 + chosen[3] % 4)) or b"x", b"own%d=1" % (n // max(1, own % 8))) for n in range(count)]
    pairs = own > 0
    body = b"".join(_sized(one) + (_sized(text) if pairs else b"") for one, text in items)
    ext, kind = (5 if pairs else 4), (0x27 if chosen[4] & 1 else 7)
    answer = SERVERS[chosen[5] & 1].serve(binary(pack(body) if kind == 0x27 else body, attrs, ext=ext, kind=kind), 1)
    if answer["action"] != "store":
        return
    entry = StoredEntry("bomb", 0, 7, 1, 1, "s", "", bytes(answer["entry"]))
    expected = containers.decode(entry.value)
    most = 1 + 64 * chosen[6]
    seen = list(_pages(entry, most, 1 + len(attrs) + 200 + 64))
    assert seen == expected
    column = Bytes()
    assert [attrs for attrs, n in entry.runs(column) for _ in range(n)] == [attrs for _, attrs in expected]
    assert len(column) == len(expected)
    if chosen[7] % 16 == 0:
        _lean(entry, len(attrs))


def _pages(entry, most, one):
    place, left = Place(), 1
    while left:
        rows = read_page(_Source(entry), "bomb", None, place, 10_000, most)
        texts = sum(200 + len(row.body) + sum(map(len, row.attrs)) + sum(map(len, row.attrs.values())) for row in rows)
        assert texts <= most + 2 * one, "a page is its bound and a record"
        yield from ((row.body, row.attrs) for row in rows)
        left = len(rows)


def _lean(entry, attributes):
    tracemalloc.start()
    deque(records_of(entry), 1)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < ROOM + 40 * attributes + 2 * len(entry.value), "a reader holds a record, not all of them"


class _Source:
    def __init__(self, entry):
        self._entry = entry

    def entries(self, _group, _stream=None, *, start=0, at=None):
        if (at or {}).get(0, start) <= self._entry.offset:
            yield self._entry


def _sized(data):
    return len(data).to_bytes(4, "big") + data


if __name__ == "__main__":
    main(check, SEEDS)
