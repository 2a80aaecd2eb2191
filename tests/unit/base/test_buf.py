"""The growing buffer against bytes."""

from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_base import Buffer, status_text

PARTS = st.lists(
    st.one_of(
        st.binary(max_size=300).map(lambda data: ("put", data)),
        st.binary(max_size=50).filter(lambda data: 0 not in data).map(lambda data: ("text", data)),
        st.tuples(st.sampled_from([8, 16, 32, 64]), st.integers(0, (1 << 64) - 1)).map(lambda x: ("number", x)),
        st.integers(-(1 << 63), (1 << 63) - 1).map(lambda value: ("decimal", value)),
    ),
    max_size=60,
)


@given(PARTS)
def test_what_is_put_comes_out(parts: list) -> None:
    buffer, expected = Buffer(), b""
    for kind, value in parts:
        if kind == "put":
            assert buffer.put(value) == 0
            expected += value
        elif kind == "text":
            assert buffer.text(value) == 0
            expected += value
        elif kind == "decimal":
            assert buffer.decimal(value) == 0
            expected += str(value).encode()
        else:
            bits, number = value
            kept = number & ((1 << bits) - 1)
            assert buffer.number(bits, number) == 0
            expected += kept.to_bytes(bits // 8, "big")
    assert bytes(buffer) == expected


def test_growth_is_geometric_and_bounded() -> None:
    buffer = Buffer()
    caps = []
    for _ in range(5000):
        buffer.put(b"x" * 100)
        caps.append(buffer.reserve(0)[1])
    assert len(set(caps)) < 20
    status, cap = buffer.reserve(1 << 63)
    assert status_text(status) == "out of memory"
    assert cap == caps[-1]
    assert len(bytes(buffer)) == 500_000
    buffer.free()
    assert bytes(buffer) == b""
    assert buffer.put(b"again") == 0
    assert bytes(buffer) == b"again"
