"""CRC-32C against published values and bit by bit, by the processor and by tables."""

import random

import pytest

from dataproxy._core.testing.probe_store import checksum


def bitwise(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("tables", [False, True])
def test_published_values(tables):
    """Those of RFC 3720, B.4."""
    assert checksum(b"", tables=tables) == 0
    assert checksum(bytes(32), tables=tables) == 0x8A9136AA
    assert checksum(b"\xff" * 32, tables=tables) == 0x62A8AB43
    assert checksum(bytes(range(32)), tables=tables) == 0x46DD794E
    assert checksum(b"123456789", tables=tables) == 0xE3069283


@pytest.mark.parametrize("tables", [False, True])
def test_every_length_in_any_pieces(tables):
    rng = random.Random(1)
    for n in range(70):
        data = rng.randbytes(n)
        assert checksum(data, tables=tables) == bitwise(data)
        cut = rng.randint(0, n)
        assert checksum(data[cut:], checksum(data[:cut], tables=tables), tables=tables) == bitwise(data)
