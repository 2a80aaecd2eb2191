"""Fuzz target: types and structs of Arrow's C data interface, as the encoders and the columns of bodies read them.

The input is a list of nodes, parents first.  What they say may be wrong in every way that a reader can notice; where
it cannot, which is how large a buffer is, the buffers are large enough.  The answer is a text for each row, or a typed
error.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any

from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.rows.zones import zone_table
from tests.fuzz.engine import main
from tests.native.probe_arrow import bodies

__all__ = ["SEEDS", "check", "node"]

ROWS, LARGEST, NODES, LIMIT = 12, 250, 200, 2048
VALUES = ctypes.create_string_buffer(bytes(range(256)) * 64, 16384)  # any value, also the text behind the offsets
UP32 = (ctypes.c_int32 * 1024)(*range(1024))
UP64 = (ctypes.c_int64 * 1024)(*range(1024))
DOWN32 = (ctypes.c_int32 * 1024)(*[9 if n % 7 else 3 for n in range(1024)])
DOWN64 = (ctypes.c_int64 * 1024)(*[9 if n % 7 else -3 for n in range(1024)])
VIEWS = ctypes.create_string_buffer(b"".join((n % 40).to_bytes(4, "little") + bytes(12) for n in range(1024)))
SIZES = (ctypes.c_int64 * 8)(*[64] * 8)
NARROW, WIDE = {b"u", b"z", b"+l", b"+m"}, {b"U", b"Z", b"+L"}
# What a node's flags say: bits.
NO_CHILD, NO_BUFFER, NO_LIST, DOWN, NO_NAME, DICTIONARY, NO_TYPE, SHORT = (1 << bit for bit in range(8))


class Schema(ctypes.Structure):
    """ArrowSchema."""


class Array(ctypes.Structure):
    """ArrowArray."""


Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]  # fmt: skip
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]  # fmt: skip
NEVER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
CAPSULE = ctypes.pythonapi.PyCapsule_New
CAPSULE.restype, CAPSULE.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def node(
    form: bytes, children: int = 0, length: int = ROWS, flags: int = 0, skew: int = 0, rest: bytes = b"\3"
) -> bytes:
    """Return the bytes of a node; ``skew`` changes its offset and counts, ``rest`` says how many buffers it has."""
    return form + b"\0" + bytes([children, length, flags, skew]) + rest


SIMPLE = (
    b"n b c s i l f g u U z Z tdD tts ttu ttn tsu: tsu:UTC tsn:America/New_York tss:+05:30 d:10,2 d:38,-3,128".split()
)
UNREAD = b"vz vu w:7 w:0 w:-1 w:99999999999999 C e tdm tsx:UTC ts:UTC tsu:Mars/Base tDs tiD +w:3 +r +ud:0,1 +vl".split()
UNREAD += [b"d:5,2,256", b"d:5", b"d:", b"d:9,99999999999", b"ts\xff:\xff", b"", b"+", b"t"]
SEEDS = [node(b"+s", 1) + node(form) for form in (*SIMPLE, *UNREAD)]
SEEDS += [node(form) for form in (*SIMPLE, *UNREAD)]
SEEDS += [
    node(b"+s", 3) + node(b"i") + node(b"u") + node(b"g"),
    node(b"+s", 2) + node(b"+l", 1) + node(b"u", length=60) + node(b"+L", 1) + node(b"i", length=60),
    node(b"+s", 1) + node(b"+m", 1) + node(b"+s", 2, 60) + node(b"u", length=60) + node(b"l", length=60),
    node(b"+s", 1) + node(b"+m", 1) + node(b"+l", 2, 60) + node(b"u", length=60) + node(b"l", length=60),
    node(b"+s", 1) + b"".join(node(b"+s", 1) for _ in range(70)) + node(b"i"),
    node(b"+s", 1) + b"".join(node(b"+l", 1, 100) for _ in range(63)) + node(b"i", length=100),
    node(b"+s", 1) + b"".join(node(b"+l", 1, 100) for _ in range(190)) + node(b"i", length=100),
    *(node(b"+s", 1) + node(form, flags=1 << bit) for form in (b"u", b"+s", b"tsu:UTC") for bit in range(8)),
    *(node(b"+s", 1) + node(b"u", skew=skew) for skew in range(16)),
    *(node(b"+s", 1, skew=skew) + node(b"u") for skew in range(16)),
]


class Tree:
    """The structs of one input, with all that they point to."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.made = 0
        self.keep: list[Any] = []
        self.schema, self.array = self._node(0)

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def _node(self, depth: int) -> tuple[Schema, Array]:
        """Read one node and those inside of it."""
        end = self.data.find(b"\0", self.at)
        form = self.data[self.at : end] if end >= 0 else b"i"
        self.at = end + 1 if end >= 0 else len(self.data)
        n_children, length, flags, skew, n_buffers = (self._byte() for _ in range(5))
        self.made += 1
        inner = []
        while len(inner) < n_children and self.at < len(self.data) and self.made < NODES and depth < NODES:
            inner.append(self._node(depth + 1))
        schema, array = Schema(), Array()
        schema.format = None if flags & NO_TYPE else form
        schema.name = None if flags & NO_NAME else b"n\xff" + form[:2]
        schema.n_children = array.n_children = len(inner)
        array.length, array.null_count = min(length, LARGEST) - (skew == 1), (0, -1, 3)[skew % 3]
        array.offset, array.n_buffers = (0, 0, 5, -1)[skew % 4], n_buffers % 5
        if skew == 7:
            array.length, array.offset = 2**62, 2**62
        if skew == 14:
            array.n_children = 9
        if skew == 12:
            schema.n_children = array.n_children = -1
        self._point(schema, array, inner, form, flags)
        return schema, array

    def _point(self, schema: Schema, array: Array, inner: list[tuple[Schema, Array]], form: bytes, flags: int) -> None:
        """Set the pointers of a node; some are missing where its flags say so."""
        schemas = (ctypes.POINTER(Schema) * (len(inner) + 1))(*[ctypes.pointer(child) for child, _ in inner])
        arrays = (ctypes.POINTER(Array) * (len(inner) + 1))(*[ctypes.pointer(child) for _, child in inner])
        if flags & NO_CHILD and inner:
            arrays[0] = None
        if not flags & NO_LIST:
            schema.children, array.children = schemas, arrays
        second: Any = VALUES
        if form in NARROW or form in WIDE:
            second = ((UP32, DOWN32), (UP64, DOWN64))[form in WIDE][bool(flags & DOWN)]
        elif form in (b"vz", b"vu"):
            second = VIEWS
        pointers = [VALUES, second, VALUES, VALUES]
        if form in (b"vz", b"vu") and array.n_buffers > 2:
            pointers[array.n_buffers - 1] = SIZES
        buffers = (ctypes.c_void_p * 5)(*map(ctypes.addressof, pointers))
        for missing, bit in ((1, NO_BUFFER), (0, SHORT)):
            if flags & bit:
                buffers[missing] = None
        array.buffers = buffers
        schema.release = array.release = ctypes.cast(NEVER, ctypes.c_void_p).value
        if flags & DICTIONARY:
            schema.dictionary = ctypes.pointer(schema)
        self.keep += [schema, array, schemas, arrays, buffers]

    def capsules(self) -> tuple[object, object]:
        """Return what ``__arrow_c_array__`` returns."""
        return (
            CAPSULE(ctypes.addressof(self.schema), b"arrow_schema", None),
            CAPSULE(ctypes.addressof(self.array), b"arrow_array", None),
        )


def check(data: bytes) -> None:
    """Encode what the bytes describe in every form, and read its columns as bodies."""
    tree = Tree(data)
    for form in ("json", "csv", "kv"):
        encoder = BodyEncoder(form, range(max(0, tree.schema.n_children)), zone_table=zone_table)
        texts = _answer(lambda encoder=encoder: encoder.texts(tree.capsules()), tree)
        for text in texts if form == "json" else ():
            json.loads(text)
    for column in (None, "n\ufffd" + data[:2].decode("utf-8", "replace")):
        _answer(lambda column=column: bodies(tree.capsules(), LIMIT, column), tree)


def _answer(call: Any, tree: Tree) -> list[bytes]:
    """Return what a call gave, nothing for a typed error with a text."""
    try:
        found = call()
    except (InvalidMessageError, ConfigError) as error:
        if not error.message:
            raise AssertionError("an error without a text") from error
        return []
    if len(found) != tree.array.length:
        raise AssertionError(f"{len(found)} texts of {tree.array.length} rows")
    return found


if __name__ == "__main__":
    main(check, SEEDS)
