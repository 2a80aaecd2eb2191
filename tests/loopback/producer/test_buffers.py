"""Whatever has the buffer protocol as a body, a batch or a key: ctypes, shared memory, views, and exporters at will."""

from __future__ import annotations

import array
import ctypes
import multiprocessing
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataproxy
from dataproxy._core.producer.accumulate.keys import bucket_of
from tests.fuzz.buffers import compare, make_facts
from tests.native.probe_buffers import Exporter, bodies, body, view


class Record(ctypes.Structure):
    """A record whose field is called like the code of objects."""

    _fields_ = (("O", ctypes.c_int16), ("w", ctypes.c_char * 2))


class Pointing(ctypes.Structure):
    """A record that holds an address."""

    _fields_ = (("n", ctypes.c_int), ("p", ctypes.POINTER(ctypes.c_int)))


@pytest.fixture
def producer(server):
    """Yield a producer whose bodies a test compares; the server's notes start empty."""
    server.frames.clear()
    with dataproxy.Producer(server.target, group_id="g", ordering="key") as p:
        yield p


ROWS = ((ctypes.c_char * 3) * 2)((ctypes.c_char * 3)(*b"abc"), (ctypes.c_char * 3)(*b"def"))
INTS = (ctypes.c_int32 * 2)(1, -1)
RECORDS = (Record * 2)(Record(1, b"ab"), Record(2, b"cd"))
SHARED = multiprocessing.RawArray(ctypes.c_int16, [1, 2, 3])
BATCHES = {
    "ctypes-2d": (ROWS, [b"abc", b"def"]),
    "ctypes-ints": (INTS, [b"\1\0\0\0", b"\xff\xff\xff\xff"]),
    "ctypes-records": (RECORDS, [b"\1\0ab", b"\2\0cd"]),
    "shared": (SHARED, [b"\1\0", b"\2\0", b"\3\0"]),
    "view-of-ctypes-2d": (memoryview(ROWS), [b"abc", b"def"]),
    "view-of-ctypes-ints": (memoryview(INTS), [b"\1\0\0\0", b"\xff\xff\xff\xff"]),
    "view-of-shared": (memoryview(SHARED), [b"\1\0", b"\2\0", b"\3\0"]),
    "part-of-a-view": (memoryview(INTS)[1:], [b"\xff\xff\xff\xff"]),
    "view-backwards": (memoryview(SHARED)[::-2], [b"\3\0", b"\1\0"]),
    "cast": (memoryview(b"abcdef").cast("B", (2, 3)), [b"abc", b"def"]),
    "none": ((ctypes.c_int * 0)(), []),
    "no-rows": (((ctypes.c_char * 3) * 0)(), []),
    "array": (array.array("H", [1, 2]), [b"\1\0", b"\2\0"]),
    "one-column": (np.arange(8, dtype=np.uint8).reshape(4, 2)[:, ::2], [b"\0", b"\2", b"\4", b"\6"]),
    "one-value-for-all": (np.broadcast_to(np.array([b"xy"]), (3,)), [b"xy"] * 3),
    "complex": (np.array([1j], "complex64"), [struct.pack("<ff", 0, 1)]),
    "field-called-like-objects": (np.array([(1, 2)], [("O", "i2"), ("w", "u2")]), [b"\1\0\2\0"]),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(server, producer, name: str) -> None:
    batch, expected = BATCHES[name]
    assert bodies(batch) == expected
    assert producer.send_batch("s", batch).result(20).ok
    assert server.bodies() == expected


@pytest.mark.parametrize("name", [name for name, (_, expected) in BATCHES.items() if expected])
def test_single_bodies_and_items_of_batches_and_keys(server, producer, name: str) -> None:
    thing, rows = BATCHES[name]
    expected = b"".join(rows)
    assert body(thing) == expected
    assert bucket_of(thing, 64) == bucket_of(expected, 64)
    assert producer.send("s", thing, key=thing).result(20)
    assert producer.send_batch("s", [thing, b"x"], key=thing).result(20).ok
    assert server.bodies() == [expected, expected, b"x"]


def released() -> memoryview:
    """Return a view that was released."""
    out = memoryview(b"gone")
    out.release()
    return out


NO_BYTES = {
    "pointers": (ctypes.POINTER(ctypes.c_int) * 2)(),
    "records-with-pointers": (Pointing * 2)(),
    "addresses": (ctypes.c_void_p * 2)(),
    "texts": (ctypes.c_char_p * 2)(b"a", b"b"),
    "wide-texts": (ctypes.c_wchar_p * 2)("a", "b"),
    "functions": (ctypes.CFUNCTYPE(None) * 2)(),
    "characters": (ctypes.c_wchar * 2)(*"ab"),
    "objects": np.array([b"x", b"y"], dtype=object),
    "text": np.array(["text"]),
    "dates": np.array(["2020-01-01"], dtype="M8[s]"),
    "records-with-objects": np.array([(1, None)], dtype=[("n", "i4"), ("o", "O")]),
    "released": released(),
    "raises": Exporter(b"", ndim=1, error=BufferError("not today")),
}


USES = [(name, call) for name in NO_BYTES for call in ("send", "send_nowait", "item", "batch", "key")]
USES.remove(("objects", "batch"))  # an array of objects is a sequence of bodies


@pytest.mark.parametrize(("name", "call"), USES)
def test_what_holds_no_bytes_is_refused_and_nothing_accepted(producer, name: str, call: str) -> None:
    thing = NO_BYTES[name]
    calls = {
        "send": lambda: producer.send("s", thing),
        "send_nowait": lambda: producer.send_nowait("s", thing),
        "item": lambda: producer.send_batch("s", [b"x", thing]),
        "batch": lambda: producer.send_batch("s", thing),
        "key": lambda: producer.send("s", b"x", key=thing),
    }
    with pytest.raises(dataproxy.InvalidMessageError) as caught:
        calls[call]()
    assert caught.value.code == ("BAD_KEY" if call == "key" else "BAD_BODY")
    assert caught.value.hint
    assert producer.stats().accepted == 0
    if call == "item":
        assert caught.value.details == {"item": 1, "accepted": 0}
        assert "(item 1)" in str(caught.value)


@pytest.mark.parametrize(
    "thing", [ctypes.c_int(5), ctypes.create_string_buffer(b"ab", 2), np.int16(3), Record(7, b"zz")]
)
def test_what_is_one_body_and_no_batch(server, producer, thing: object) -> None:
    assert producer.send("s", thing).result(20)
    with pytest.raises(dataproxy.InvalidMessageError, match="is not a batch of bodies"):
        producer.send_batch("s", thing)
    assert server.bodies() == [
        bytes(memoryview(thing).cast("B")) if memoryview(thing).ndim else bytes(memoryview(thing))
    ]


def test_the_reasons() -> None:
    assert view(Exporter(b"ab", ndim=1, len_=3, shape=(2,))) == (
        "'Exporter' has a buffer whose sizes contradict each other", False, b"",
    )  # fmt: skip
    for options in ({"strides": (1,)}, {"suboffsets": (-1,)}, {"strides": (1,), "suboffsets": (0,)}):
        assert view(Exporter(b"ab", ndim=1, len_=2, **options)) == (
            "'Exporter' has a buffer whose sizes contradict each other", False, b"",
        )  # fmt: skip
    assert view(np.array([b"x"], dtype=object))[0] == (
        "a 'ndarray' of format 'O' holds objects, addresses or text, not bytes"
    )
    assert view(released())[0].startswith("'memoryview' has no buffer of bytes: operation forbidden on released")


def test_rows_behind_pointers(server, producer) -> None:
    rows = Exporter(
        b"--abcdef--xy-z", ndim=2, len_=9, shape=(3, 3), strides=(8, 1), suboffsets=(0, -1), pointers=(2, 5, 10)
    )  # fmt: skip
    assert producer.send_batch("s", rows).result(20).ok
    assert producer.send("s", rows).result(20)
    assert server.bodies() == [b"abc", b"def", b"xy-", b"abcdefxy-"]
    assert rows.exports == 0


@given(st.binary(max_size=8))
def test_any_exporter(data: bytes) -> None:
    compare(make_facts(data))
