"""CRC-32C against published values and bit by bit, CRC-32 against zlib: by the processor and by tables."""

import platform
import random
import zlib
from pathlib import Path

import pytest

from tests.native.probe_store import checksum, checksum_by_processor
from tests.native.probe_tubemq import crc, crc_by_processor


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


@pytest.mark.parametrize("tables", [False, True])
def test_crc32_of_every_length_in_any_pieces(tables):
    rng = random.Random(2)
    for n in (*range(260), 1000, 4096, 65_537):
        data = rng.randbytes(n)
        assert crc(data, tables=tables) == zlib.crc32(data)
        cut = rng.randint(0, n)
        assert crc(data[cut:], crc(data[:cut], tables=tables), tables=tables) == zlib.crc32(data)


@pytest.mark.parametrize("tables", [False, True])
def test_crc32_finds_every_changed_bit(tables):
    data = bytearray(random.Random(3).randbytes(200))
    right = crc(bytes(data), tables=tables)
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        assert crc(bytes(data), tables=tables) != right
        data[bit // 8] ^= 1 << bit % 8


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors use the tables")
def test_the_processor_is_used_where_it_has_the_instruction():
    """Whatever compiler built the module: one whose run-time library knows no processor would fall back to tables."""
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    assert checksum_by_processor() == ("sse4_2" in flags)
    assert crc_by_processor() == ("pclmulqdq" in flags)
