"""The one way over the items of a pack: what it finds, and that it never leaves the bytes."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_items import FORMS, items, kept_ids

Item = tuple[bytes, bytes]


def packed(messages: list[Item], form: str) -> bytes:
    """Return the bytes of items."""
    if form == "lines":
        return b"".join(body + b"\n" for body, _ in messages)
    parts = [(body, attrs) if form == "attrs" else (body,) for body, attrs in messages]
    return b"".join(struct.pack(">I", len(part)) + part for item in parts for part in item)


def model(data: bytes, form: str, most: int) -> list[Item]:
    """Return what is to be found."""
    if form == "lines":
        lines = data.split(b"\n")
        return [(line, b"") for line in (lines[:-1] if lines[-1] == b"" else lines)][:most]
    found: list[Item] = []
    while len(found) < most:
        parts = []
        for _ in range(2 if form == "attrs" else 1):
            n = int.from_bytes(data[:4], "big")
            if len(data) < 4 or n > len(data) - 4:
                return found
            parts.append(data[4 : 4 + n])
            data = data[4 + n :]
        found.append((parts[0], parts[1] if form == "attrs" else b""))
    return found


BODIES = st.binary(max_size=12).map(lambda body: body.replace(b"\n", b""))
MESSAGES = st.lists(st.tuples(BODIES, BODIES), max_size=6)


@given(MESSAGES, st.sampled_from(sorted(FORMS)), st.integers(0, 9))
def test_whole_items(messages: list[Item], form: str, most: int) -> None:
    expected = [(body, attrs if form == "attrs" else b"") for body, attrs in messages][:most]
    assert items(packed(messages, form), FORMS[form], most) == expected


@given(st.one_of(st.binary(max_size=40), MESSAGES.map(lambda m: packed(m, "attrs"))), st.data())
def test_cut_off_and_random_bytes_end_the_walk(data: bytes, draw: st.DataObject) -> None:
    data = data[: draw.draw(st.integers(0, len(data)))]
    form = draw.draw(st.sampled_from(sorted(FORMS)))
    most = draw.draw(st.integers(0, 12))
    assert items(data, FORMS[form], most) == model(data, form, most)


def test_lengths_beyond_the_end() -> None:
    for n in (1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF):
        for form in ("length", "attrs"):
            assert items(struct.pack(">I", n), FORMS[form], 3) == []
            assert items(struct.pack(">I", n) + b"abc"[: n - 1], FORMS[form], 3) == []


@given(st.lists(st.sampled_from([b"", b"a=1", b"msgid=x", b"msgid=abc&a=1", b"msgid="]), max_size=6), st.data())
def test_ids_outlive_the_items_and_a_pack_that_is_cut_off_keeps_none(texts: list[bytes], draw: st.DataObject) -> None:
    data = packed([(b"body", text) for text in texts], "attrs")
    ids = {b"msgid=x": "x", b"msgid=abc&a=1": "abc"}
    expected = [ids.get(text) for text in texts]
    assert kept_ids(data, len(texts)) in (expected, None if not texts else expected)
    if data:
        assert kept_ids(data[: draw.draw(st.integers(0, len(data) - 1))], len(texts)) is None
    assert kept_ids(data, len(texts) + 1) is None
