"""The walk over snappy blocks: it passes whole blocks alone, its marks are tags, and words are what unpacking gives."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_blocks import Block
from tests.native.probe_wire import ProbeError, pack, unpack
from tests.support.reference import snappy
from tests.support.reference.snappy import lines, size_prefix, tags

LIMIT = 1 << 22


def unpacked(block):
    try:
        return unpack(block, LIMIT)
    except ProbeError:
        return None


@st.composite
def made_of_tags(draw):
    """A block of tags of all forms, and now and then one that is wrong."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    wrong = draw(st.sampled_from((0.0, 0.0, 0.002)))
    most = draw(st.sampled_from((3, 40, 3000, 9000)))
    out, size = bytearray(), 0
    for _ in range(rng.randrange(1, most + 1)):
        kind = rng.choice((0, 0, 1, 1, 2, 2, 2)) if rng.random() > 0.0005 else 3
        if kind == 0 or size == 0:
            n = rng.choice((1, 2, 5, 8, 12, 59, 60)) if rng.random() > 0.01 else rng.choice((61, 256, 257, 3000, 70000))
            width = 0 if n <= 60 and rng.random() > 0.02 else rng.randrange((n - 1).bit_length() + 7 >> 3, 4) or 1
            out += bytes((n - 1 << 2,)) if width == 0 else bytes((59 + width << 2,)) + (n - 1).to_bytes(width, "little")
            out += rng.randbytes(n)
        else:
            n = rng.randrange(4, 12) if kind == 1 else rng.randrange(1, 65)
            farthest = min(size, (0, 2047, 65535, 1 << 31)[kind])
            back = rng.choice((1, 2, farthest, rng.randint(1, farthest)))
            if rng.random() < wrong:
                back = rng.choice((0, min(size + 1, (0, 2047, 65535, 1 << 31)[kind])))
            if kind == 1:
                out += bytes((back >> 8 << 5 | n - 4 << 2 | 1, back & 0xFF))
            else:
                out += bytes((n - 1 << 2 | kind,)) + back.to_bytes(2 if kind == 2 else 4, "little")
        size += n
    said = size + (rng.choice((-1, 1)) if rng.random() < 10 * wrong else 0)
    return size_prefix(said) + bytes(out)


@given(made_of_tags())
def test_what_the_walk_passes_unpacks(block):
    raw = unpacked(block)
    marks = Block(block).marks(LIMIT)
    if marks is None:
        assert raw is None or any(block[at] & 3 == 3 for at, _, _ in tags(block))
        return
    assert raw is not None
    assert Block(block).marks(len(raw)) is not None
    assert Block(block).marks(len(raw) - 1) is None


@pytest.mark.parametrize("kind", ["text", "letters", "random", "runs"])
@pytest.mark.parametrize("size", [1, 100, 3000, 20_000, 65_536, 300_000])
def test_marks_are_tags_at_most_eight_apart(kind, size):
    raw = lines(kind, size, 5)
    block = pack(raw)
    places = [(at, content) for at, content, _ in tags(block)]
    number = {place: i for i, place in enumerate(places)}
    marks = Block(block).marks(size)
    assert marks[0] == places[0]
    found = [number[mark] for mark in dict.fromkeys(marks)]
    assert all(0 < after - before <= 8 for before, after in zip(found, [*found[1:], len(places)], strict=True))


@given(st.sampled_from(("text", "letters", "random", "runs")), st.integers(4, 200_000), st.integers(0, 1 << 32))
def test_words_are_those_of_the_content(kind, size, seed):
    rng = random.Random(seed)
    raw = lines(kind, size, seed)
    places = sorted({rng.randrange(size - 3) // 4 * 4 for _ in range(rng.randrange(1, 40))})
    words = Block(pack(raw)).words(size, places)
    assert [raw[at : at + 4] if word is not None else None for at, word in zip(places, words, strict=True)] == words
    assert words[0] is not None


@pytest.mark.parametrize("kind", ["text", "letters"])
def test_one_bad_tag_in_many_is_seen(kind):
    raw = lines(kind, 300_000, 7)
    block = pack(raw)
    rng = random.Random(7)
    copies = [(at, content) for at, content, tag in tags(block) if tag & 3 in (1, 2)]
    for at, content in rng.sample(copies, 150) + copies[:50] + copies[-50:]:
        short = block[at] & 3 == 1
        for back in (0, content + 1):
            if back > (2047 if short else 65535):
                continue
            bad = bytearray(block)
            if short:
                bad[at] = back >> 8 << 5 | bad[at] & 0x1F
                bad[at + 1] = back & 0xFF
            else:
                bad[at + 1 : at + 3] = back.to_bytes(2, "little")
            assert unpacked(bytes(bad)) is None
            assert Block(bytes(bad)).marks(LIMIT) is None


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 61, 512, 1000, 5000])
def test_a_cut_block_is_not_whole(cut):
    block = pack(lines("text", 100_000, 3))
    assert Block(block[:-cut]).marks(LIMIT) is None
    assert Block(block + block[-cut:]).marks(LIMIT) is None


@given(st.binary(max_size=80))
def test_random_bytes(block):
    if Block(block).marks(LIMIT) is not None:
        assert unpacked(block) == snappy.unpack(block)
