"""Keys: their hash and buckets against published vectors, and what is refused."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataproxy
from dataproxy._core.producer.accumulate.keys import bucket_of
from tests.support.scripted import Scripted

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


ONE_TO = "give bytes or text of 1 to 1024 bytes, or leave the key out if the order does not matter [BAD_KEY]"
BAD = [
    ("", f"a key is empty; {ONE_TO}"),
    (b"", f"a key is empty; {ONE_TO}"),
    (7, "a key is bytes or text, not 'int'; give bytes or text, e.g. str(key) [BAD_KEY]"),
    (("a", "b"), "a key is bytes or text, not 'tuple'; give bytes or text, e.g. str(key) [BAD_KEY]"),
    (b"k" * 1025, "a key of 1025 bytes is over the limit of 1024 bytes; give a digest of it [BAD_KEY]"),
    ("é" * 513, "a key of 1026 bytes is over the limit of 1024 bytes; give a digest of it [BAD_KEY]"),
    ("a\ud800", "the key 'a\\ud800' holds half of a surrogate pair; give valid text, or bytes [BAD_KEY]"),
]


@pytest.mark.parametrize(("key", "text"), BAD)
def test_bad_keys(key, text):
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g", ordering="key") as p:
        s = p.stream("s")
        for call in (
            lambda: s.send(b"x", key=key),
            lambda: s.send_nowait(b"x", key=key),
            lambda: p.send("s", b"x", key=key),
            lambda: p.send_nowait("s", b"x", key=key),
            lambda: p.send_batch("s", [b"x"], key=key),
        ):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                call()
            assert str(caught.value) == text
        assert p.report().accepted == 0
        s.send(b"x", key=b"k" * 1024).result()


def test_a_key_without_ordering():
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g") as p:
        for call in (p.send, p.send_nowait, lambda stream, body, key: p.send_batch(stream, [body], key=key)):
            with pytest.raises(dataproxy.ConfigError) as caught:
                call("s", b"x", key="k")
            assert str(caught.value) == (
                "key= was given, but ordering is 'none'; open the producer with ordering='key', or leave the key out: "
                "without ordering it has no effect [CONFIG]"
            )
        assert p.report().accepted == 0
