"""Keys: their hash and buckets against published vectors."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.producer.accumulate.keys import bucket_of

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "key_hash.json").read_text())["vectors"]
WORD = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the hash as its definition has it, written a second time."""
    h = (0x9747B28C ^ len(data)) & WORD
    whole = len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        k = k * 0x5BD1E995 & WORD
        k ^= k >> 24
        h = (h * 0x5BD1E995 & WORD) ^ (k * 0x5BD1E995 & WORD)
    if data[whole:]:
        h = (h ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 & WORD
    h = (h ^ h >> 13) * 0x5BD1E995 & WORD
    return h ^ h >> 15


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["key"][:12])
def test_published_vectors(vector):
    unsigned = vector["hash"] & WORD
    assert murmur2(vector["key"].encode()) == unsigned
    for buckets in (1, 2, 7, 64, 4096, 2**31 - 1):
        assert bucket_of(vector["key"], buckets) == (unsigned & 0x7FFFFFFF) % buckets


@given(st.binary(min_size=1, max_size=64), st.integers(1, 4096))
def test_the_hash_of_any_bytes(key, buckets):
    assert bucket_of(key, buckets) == (murmur2(key) & 0x7FFFFFFF) % buckets
    assert bucket_of(bytearray(key), buckets) == bucket_of(memoryview(key), buckets) == bucket_of(key, buckets)


@given(st.text(min_size=1, max_size=20).filter(lambda s: s.isprintable()))
def test_text_counts_as_utf8(key):
    assert bucket_of(key, 64) == bucket_of(key.encode(), 64)
