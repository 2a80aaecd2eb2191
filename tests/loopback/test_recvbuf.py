"""The receive buffer: growth, compaction, limit, giving memory back."""

import random

from tests.native.probe_io_recvbuf import ReceiveBuffer

ST_OK = 0
ST_LIMIT = -3


def test_no_memory_before_the_first_byte_and_none_after_rest():
    buffer = ReceiveBuffer(1 << 20)
    assert buffer.capacity == 0 and buffer.data() == b""
    assert buffer.write(b"x" * 100) == ST_OK
    assert buffer.capacity >= 100
    buffer.consume(100)
    buffer.rest(0)
    assert buffer.capacity == 0


def test_keeps_a_small_block_if_asked():
    buffer = ReceiveBuffer(1 << 20)
    assert buffer.write(b"x") == ST_OK
    buffer.consume(1)
    buffer.rest(8192)
    assert buffer.capacity == 4096


def test_rest_cuts_a_large_block_to_the_data():
    buffer = ReceiveBuffer(1 << 20)
    assert buffer.write(bytes(500_000)) == ST_OK
    assert buffer.write(b"tail") == ST_OK
    buffer.consume(500_000)
    buffer.rest(4096)
    assert buffer.capacity == 4
    assert buffer.data() == b"tail"
    assert buffer.write(b"more") == ST_OK
    assert buffer.data() == b"tailmore"


def test_limit_is_exact():
    buffer = ReceiveBuffer(5000)
    assert buffer.write(bytes(5000)) == ST_OK
    assert buffer.write(b"x") == ST_LIMIT
    buffer.consume(1)
    assert buffer.write(b"x") == ST_OK
    assert len(buffer.data()) == 5000
    assert buffer.capacity == 5000


def test_random_writes_and_reads_keep_the_order():
    draw = random.Random(7)
    buffer = ReceiveBuffer(1 << 16)
    expected = bytearray()
    for _ in range(3000):
        if draw.random() < 0.55:
            data = draw.randbytes(draw.randrange(1, 700))
            if len(expected) + len(data) <= 1 << 16:
                assert buffer.write(data) == ST_OK
                expected += data
            else:
                assert buffer.write(data) == ST_LIMIT
        else:
            n = draw.randrange(0, len(expected) + 1)
            buffer.consume(n)
            del expected[:n]
        if draw.random() < 0.1:
            buffer.rest(draw.choice([0, 4096]))
        assert buffer.data() == expected
