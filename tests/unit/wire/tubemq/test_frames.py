"""TubeMQ's frames in pieces: any split gives the same frames, wrong bytes are refused at once, work is linear."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_tubemq import ProbeError, Stream, frame
from tests.support.reference import tubemq as plain

PROTOCOL, LIMIT = -2, -3
STREAM = frame(1, b"abc") + frame(0xFFFFFFFF, bytes(range(256)) * 40) + frame(3, b"z")
FOUND = [(1, b"abc"), (0xFFFFFFFF, bytes(range(256)) * 40), (3, b"z")]


def pushed(pieces: list[bytes]) -> list[tuple[int, bytes]]:
    stream = Stream()
    return [found for piece in pieces for found in stream.push(piece)]


def refusal(data: bytes, most: int = 1 << 24) -> int:
    with pytest.raises(ProbeError) as caught:
        Stream(most).push(data)
    return int(caught.value.status)


def test_every_split_gives_the_same_frames() -> None:
    assert pushed([STREAM[at : at + 1] for at in range(len(STREAM))]) == FOUND
    for cut in range(0, len(STREAM), 7):
        assert pushed([STREAM[:cut], STREAM[cut:]]) == FOUND


@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 30000), st.integers(1, 65536)), min_size=1, max_size=4)
)
def test_any_frames_in_any_slices(shapes: list[tuple[int, int, int]]) -> None:
    """A peer may cut as it likes; what is written here is what the reference writes."""
    source = random.Random(repr(shapes))
    frames = [(serial, source.randbytes(size)) for serial, size, _ in shapes]
    data = b"".join(
        plain.cut(serial, payload, max(cut, len(payload) // 3000 + 1))
        for (serial, payload), (_, _, cut) in zip(frames, shapes, strict=True)
    )
    assert pushed([data]) == plain.join(data) == frames
    at = source.randrange(len(data))
    assert pushed([data[:at], data[at:]]) == frames
    for serial, payload in frames:
        assert frame(serial, payload) == plain.cut(serial, payload)


@pytest.mark.parametrize("at", range(4))
def test_a_wrong_token_is_refused_by_its_first_wrong_byte(at: int) -> None:
    data = bytearray(STREAM[: at + 1])
    data[at] ^= 1
    assert refusal(bytes(data)) == PROTOCOL
    assert Stream().push(STREAM[:at]) == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("ff7ff4fe 00000001 00000000", PROTOCOL),
        ("ff7ff4fe 00000001 ffffffff", PROTOCOL),
        ("ff7ff4fe 00000001 00000e01", LIMIT),
        ("ff7ff4fe 00000001 00000001 00000000", PROTOCOL),
        ("ff7ff4fe 00000001 00000001 ffffffff", PROTOCOL),
        ("ff7ff4fe 00000001 00000001 00010001", PROTOCOL),
    ],
)
def test_lengths_that_lie_are_refused_before_their_bytes_come(head: str, status: int) -> None:
    assert refusal(bytes.fromhex(head)) == status


def test_a_payload_above_the_limit_is_refused_before_it_comes() -> None:
    assert Stream(8192).push(frame(1, bytes(8192))) == [(1, bytes(8192))]
    assert refusal(frame(1, bytes(8193))[: 12 + 4 + 8192 + 4], most=8192) == LIMIT
    assert refusal(frame(1, bytes(100))[:16], most=99) == LIMIT


def test_a_wrong_frame_behind_a_good_one() -> None:
    stream = Stream()
    assert stream.push(STREAM[:19] + b"\xff\x7f") == FOUND[:1]
    with pytest.raises(ProbeError):
        stream.push(b"\xf4\xff")


def test_looking_for_the_end_begins_where_it_stopped() -> None:
    """What was looked at is not looked at again: not even a length that is wrong by then."""
    stream = Stream()
    whole = plain.cut(1, b"x" * 40, 10)
    assert stream.push(whole[:-1]) == []
    assert stream.looked == 12 + 3 * 14
    stream.overwrite(12, b"\0\0\0\0")
    assert stream.looked == 12 + 3 * 14
    stream.overwrite(26, b"\xff\xff\xff\xff")
    with pytest.raises(ProbeError):
        Stream().push(whole[:12] + b"\0\0\0\0" + whole[16:])
    assert stream.ends(whole[-1:])


@pytest.mark.parametrize(
    "data", [plain.cut(1, bytes(65536), 65536), plain.cut(1, bytes(3584), 1)], ids=["slice", "slices"]
)
def test_the_largest_that_is_taken(data: bytes) -> None:
    ((serial, payload),) = Stream().push(data)
    assert (serial, payload) == (1, bytes(len(payload)))
