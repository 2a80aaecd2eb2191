"""Fuzz target: exporters of buffers with every combination of shape, strides and suboffsets that PEP 3118 allows.

Each input makes one exporter, which hands out the same facts whatever it is asked for, as ctypes does; what is taken
from it is compared with the items, looked up one by one.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from math import prod
from typing import Any

from dataproxy.errors import InvalidMessageError
from tests.fuzz.engine import main
from tests.native import probe_buffers

__all__ = ["SEEDS", "Facts", "check", "compare", "make_facts"]

BAD_FORMATS = (b"O", b"&<i", b"P", b"w", b"<u", b"X{}", b"<z", b"<Z", b"T{O:a:i:b:}", b"T{i:a:&i:b:}")
#: What an exporter must not say: its sizes contradict each other.
LIES = ("len+1", "len-1", "itemsize", "negative shape", "negative len", "dimensions", "no shape", "no memory")


@dataclass
class Facts:
    """What one exporter hands out, and what its items are."""

    options: dict[str, Any]
    memory: bytes
    shape: tuple[int, ...]
    itemsize: int
    row_is_packed: bool
    items: list[bytes] = field(default_factory=list)
    good_format: bool = True
    lie: str = ""

    def exporter(self) -> probe_buffers.Exporter:
        """Return the exporter."""
        return probe_buffers.Exporter(self.memory, **self.options)

    @property
    def is_batch(self) -> bool:
        """Tell whether it is an array of bodies."""
        if len(self.shape) == 1:
            form = self.options["format"] or b"B"
            return self.itemsize > 1 or form == b"1s" or form.startswith(b"T{")  # NumPy's S1 and structs of one byte
        return len(self.shape) == 2 and self.itemsize == 1 and (
            self.row_is_packed or self.options["suboffsets"] is not None
        )  # fmt: skip

    @property
    def bodies(self) -> list[bytes]:
        """Return the bodies of that batch."""
        if len(self.shape) == 1:
            form = self.options["format"] or b""
            padded = form.endswith(b"s") and form[:-1].isdigit()  # NumPy's S: NUL bytes fill items up
            return [item.rstrip(b"\0") for item in self.items] if padded else self.items
        width = self.shape[1]
        return [b"".join(self.items[i * width : (i + 1) * width]) for i in range(self.shape[0])]


def make_facts(data: bytes) -> Facts:
    """Return the facts that some bytes stand for."""
    rng = random.Random(data)
    ndim = rng.choice((0, 1, 1, 1, 2, 2, 2, 3))
    shape = tuple(rng.choice((0, 1, 2, 3, 5)) for _ in range(ndim))
    itemsize = rng.choice((1, 1, 1, 2, 4, 5))
    layout = rng.choice(("packed", "packed", "spread", "indirect")) if ndim else "packed"
    strides = _strides(rng, shape, itemsize, spread=layout == "spread")
    offsets, start, size = _places(shape, strides, itemsize)
    options: dict[str, Any] = {
        "ndim": ndim, "itemsize": itemsize, "len_": prod(shape) * itemsize, "shape": shape, "strides": strides,
        "suboffsets": rng.choice((None, None, (-1,) * ndim)) if ndim else None, "readonly": rng.random() < 0.5,
        "start": start, "format": _format(rng, itemsize),
    }  # fmt: skip
    if layout == "indirect":
        step = strides[0]
        options.update(
            pointers=[start + i * step for i in range(shape[0])], strides=(8, *strides[1:]), start=0,
            suboffsets=(0, *(-1,) * (ndim - 1)),
        )  # fmt: skip
    elif layout == "packed":
        if rng.random() < 0.6:
            options["strides"] = None
            options["suboffsets"] = None
        if ndim == 0 or (ndim == 1 and options["strides"] is None and rng.random() < 0.3):
            options["shape"] = None
    memory = rng.randbytes(size)
    packed = len(shape) < 2 or options["strides"] is None or options["strides"][1] == 1 or shape[1] <= 1
    facts = Facts(options, memory, shape, itemsize, packed, [memory[at : at + itemsize] for at in offsets])
    if rng.random() < 0.1:
        options["format"] = rng.choice(BAD_FORMATS)
        facts.good_format = False
    elif rng.random() < 0.2:
        facts.lie = _lie(rng, options)
    return facts


def _strides(rng: random.Random, shape: tuple[int, ...], itemsize: int, *, spread: bool) -> tuple[int, ...]:
    """Return strides of items in order, or with gaps and backwards."""
    out: list[int] = []
    step = itemsize
    for n in reversed(shape):
        if spread:
            step += rng.choice((0, 0, 1, 3))
        out.insert(0, -step if spread and rng.random() < 0.3 else step)
        step *= max(1, n)
    return tuple(out)


def _places(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[list[int], int, int]:
    """Return where each item lies in memory, where the first one does, and how large the memory is."""
    raw = [
        sum(i * step for i, step in zip(index, strides, strict=True))
        for index in itertools.product(*(range(n) for n in shape))
    ]
    low = min(raw, default=0)
    return [at - low for at in raw], -low, max(raw, default=0) - low + itemsize


def _format(rng: random.Random, itemsize: int) -> bytes | None:
    found = [None, b"%ds" % itemsize, b"T{%ds:Ou&:}" % itemsize]
    if itemsize == 1:
        found += [b"B", b"b", b"c", b"<c", b"?"]
    if itemsize == 4:
        found += [b"<i", b"=f", b"T{<h:x:<h:O:}"]
    return rng.choice(found)


def _lie(rng: random.Random, options: dict[str, Any]) -> str:
    """Make one fact contradict the others; return which, or nothing where that one cannot."""
    lie = rng.choice(LIES)
    if lie in ("len+1", "len-1"):
        options["len_"] += 1 if lie == "len+1" else -1
        if options["shape"] is None and options["len_"] % options["itemsize"] == 0 and options["ndim"] == 1:
            return _honest(options, len_=options["len_"] - (1 if lie == "len+1" else -1))
    elif lie == "itemsize":
        options["itemsize"] = rng.choice((-1, 0, 7))
        if options["len_"] == 0 and options["itemsize"] != -1 and options["ndim"]:
            return _honest(options, itemsize=1)
        if options["shape"] is None and options["ndim"] and options["itemsize"] == 7 and options["len_"] % 7 == 0:
            return _honest(options, itemsize=1)
    elif lie == "negative shape" and options["shape"]:
        options["shape"] = (-1, *options["shape"][1:])
    elif lie == "negative len":
        options["len_"] = -options["itemsize"]
    elif lie == "dimensions":
        options["ndim"] = rng.choice((-1, 65))
    elif lie == "no shape" and options["ndim"] > 1:
        options["shape"] = None
    elif lie == "no memory" and options["len_"] > 0:
        options.update(null=True, pointers=None)
    else:
        return ""
    return lie


def _honest(options: dict[str, Any], **back: int) -> str:
    options.update(back)
    return "itemsize only" if "itemsize" in back else ""


def _refused(call: Any, thing: object) -> bool:
    try:
        call(thing)
    except InvalidMessageError as error:
        return error.code == "BAD_BODY" and bool(error.hint)
    return False


def compare(facts: Facts) -> None:
    """Hold what is taken from an exporter against what it has."""
    thing = facts.exporter()
    reason, _, data = probe_buffers.view(thing)
    assert thing.exports == 0
    if facts.lie == "itemsize only":
        return  # legal again, of another shape
    if facts.lie or not facts.good_format:
        assert reason, facts
        assert _refused(probe_buffers.body, thing), facts
        assert _refused(probe_buffers.bodies, thing), facts
        return
    assert reason is None, (reason, facts)
    assert data == probe_buffers.body(thing) == b"".join(facts.items), facts
    if facts.is_batch:
        assert probe_buffers.bodies(thing) == facts.bodies, facts
    else:
        assert _refused(probe_buffers.bodies, thing), facts
    assert thing.exports == 0, facts


def check(data: bytes) -> None:
    """Make one exporter and compare."""
    compare(make_facts(data))


SEEDS = [bytes([i]) for i in range(64)]

if __name__ == "__main__":
    main(check, SEEDS)
