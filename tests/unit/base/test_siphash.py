"""The hash against its published results and an implementation in plain Python."""

from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_window import siphash

KEY = bytes(range(16))
MASK = 2**64 - 1


def turned(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


def reference(key: bytes, data: bytes) -> bytes:
    first, second = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    a, b = 0x736F6D6570736575 ^ first, 0x646F72616E646F6D ^ second ^ 0xEE
    c, d = 0x6C7967656E657261 ^ first, 0x7465646279746573 ^ second

    def rounds(n: int) -> None:
        nonlocal a, b, c, d
        for _ in range(n):
            a, c = (a + b) & MASK, (c + d) & MASK
            b, d = turned(b, 13) ^ a, turned(d, 16) ^ c
            a = turned(a, 32)
            c, a = (c + b) & MASK, (a + d) & MASK
            b, d = turned(b, 17) ^ c, turned(d, 21) ^ a
            c = turned(c, 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        d ^= word
        rounds(2)
        a ^= word
    c ^= 0xEE
    rounds(4)
    out = (a ^ b ^ c ^ d).to_bytes(8, "little")
    b ^= 0xDD
    rounds(4)
    return out + (a ^ b ^ c ^ d).to_bytes(8, "little")


def test_published_results():
    assert siphash(KEY, b"").hex() == "a3817f04ba25a8e66df67214c7550293"
    assert siphash(KEY, b"\0").hex() == "da87c1d86b99af44347659119b22fc45"


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=80))
def test_agrees_with_plain_python(key, data):
    assert siphash(key, data) == reference(key, data)


def test_every_length_gives_another_result():
    assert len({siphash(KEY, bytes(n)) for n in range(600)}) == 600
