"""Snappy blocks: golden forms, round trips, limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_wire import ProbeError, pack, pack_limit, size_of_packed, unpack
from tests.support.reference import snappy
from tests.support.reference.vectors import named

ST_PROTOCOL, ST_LIMIT = -2, -3


@pytest.mark.parametrize("vector", named("snappy"))
def test_golden_blocks(vector):
    block, raw = bytes.fromhex(vector["compressed"]), bytes.fromhex(vector["raw"])
    assert unpack(block, len(raw)) == raw == snappy.unpack(block)
    assert size_of_packed(block, len(raw)) == len(raw)
    with pytest.raises(ProbeError) as info:
        unpack(block, len(raw) - 1)
    assert info.value.status == ST_LIMIT


@given(st.binary(min_size=1, max_size=3000), st.integers(1, 40))
def test_both_packers_and_unpackers_agree(raw, times):
    raw *= times
    block = pack(raw)
    assert len(block) <= pack_limit(len(raw))
    assert snappy.unpack(block) == raw
    assert unpack(snappy.pack_literals(raw), len(raw)) == raw


@given(st.binary(max_size=80))
def test_random_bytes_are_judged_alike(block):
    try:
        raw = snappy.unpack(block, 65536)
    except snappy.SnappyError:
        raw = b""
    if raw:
        assert unpack(block, 65536) == raw
    else:
        with pytest.raises(ProbeError):
            unpack(block, 65536)


@pytest.mark.parametrize("block", [b"", b"\x00", b"\xff\xff\xff\xff\x0f\x00", b"\x80\x80\x80\x80\x10"])
def test_a_large_size_in_a_small_block_takes_no_memory(block):
    with pytest.raises(ProbeError) as info:
        unpack(block, 1 << 40)
    assert info.value.status == ST_PROTOCOL
