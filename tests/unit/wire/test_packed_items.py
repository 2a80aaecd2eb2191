"""Items in a snappy block, walked as they came: the same count and the same answer as after unpacking."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.engine import mutate
from tests.native.probe_blocks import Block
from tests.native.probe_wire import Server, Wire, pack
from tests.support.reference.snappy import lines, pack_literals

LIMIT = 20 << 20
NOW = 1_600_000_000_000


def framed(bodies):
    return b"".join(len(body).to_bytes(4) + body for body in bodies)


def bodies_of(kind, size, count, seed):
    raw = lines(kind, max(size * count, 1), seed)
    return [raw[i * size : (i + 1) * size] for i in range(count)]


@pytest.mark.parametrize("packer", [pack, pack_literals])
@pytest.mark.parametrize("kind", ["text", "letters", "random"])
@pytest.mark.parametrize(("size", "count"), [(1024, 389), (1020, 400), (300, 50), (5000, 80), (200_000, 3), (1024, 1)])
def test_frames_of_producers_need_no_unpacking(packer, kind, size, count):
    block = Block(packer(framed(bodies_of(kind, size, count, size))))
    assert block.items(LIMIT) == block.unpacked_items(LIMIT) == count


@given(
    kind=st.sampled_from(("text", "letters", "random", "runs")),
    size=st.sampled_from((1, 7, 40, 100, 300, 1024)),
    count=st.integers(1, 150),
    seed=st.integers(0, 1 << 32),
    flaw=st.sampled_from(("none", "length", "empty", "cut", "tail")),
)
def test_the_count_is_that_of_the_content(kind, size, count, seed, flaw):
    rng = random.Random(seed)
    raw = bytearray(framed(bodies_of(kind, size, count, seed)))
    at = rng.randrange(count) * (size + 4)
    if flaw == "length":
        raw[at : at + 4] = (size + rng.choice((-1, 1, 4, 1 << 31))).to_bytes(4)
    elif flaw == "empty":
        raw[at : at + 4] = bytes(4)
    elif flaw == "cut":
        del raw[-rng.randrange(1, size + 4) :]
    elif flaw == "tail":
        raw += bytes(rng.randrange(1, 8))
    block = Block(pack(bytes(raw)))
    assert block.items(LIMIT) in (None, block.unpacked_items(LIMIT))


@given(
    kind=st.sampled_from(("text", "letters", "random", "runs")),
    size=st.sampled_from((40, 100, 1024, 3000)),
    total=st.sampled_from((2000, 20_000, 150_000)),
    seed=st.integers(0, 1 << 32),
)
def test_a_changed_block_is_judged_as_when_unpacked(kind, size, total, seed):
    rng = random.Random(seed)
    packed = pack(framed(bodies_of(kind, size, -(-total // size), seed)))
    for _ in range(10):
        at = rng.randrange(len(packed))
        changed = Block(packed[:at] + mutate(packed[at : at + 60], [packed[:200]], rng) + packed[at + 60 :])
        assert changed.items(LIMIT) in (None, changed.unpacked_items(LIMIT))
    cut = Block(packed[: rng.randrange(len(packed))])
    assert cut.items(LIMIT) in (None, cut.unpacked_items(LIMIT))


@pytest.mark.parametrize("size", [1, 12, 48, 100, 1024])
def test_the_server_counts_items_of_any_size(size):
    raw = framed(bodies_of("text", size, 300, size))
    attrs = b"groupId=g&streamId=s"
    answer = Server(compress_entries=False).serve(Wire().frame(pack(raw), attrs, compressed=True, count=300), NOW)
    assert (answer["action"], answer["code"], answer["records"]) == ("store", 0, 300)


def test_the_server_says_where_an_item_is_malformed():
    raw = framed(bodies_of("text", 1024, 100, 1)) + b"\0\0\0\x09abc"
    answer = Server().serve(Wire().frame(pack(raw), b"groupId=g&streamId=s", compressed=True, count=101), NOW)
    assert answer["action"] == "reply"
    assert b"Malformed item at offset(102800) of bodyLen(102807)" in answer["reply"]
