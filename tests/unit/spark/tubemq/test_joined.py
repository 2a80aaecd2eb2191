"""Small batches are joined, whole and in order."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.spark.tubemq.joined import joined

TEXTS = pa.map_(pa.string(), pa.string())


def batch(*bodies: bytes) -> pa.RecordBatch:
    """Return a batch with bodies, and attributes that name them."""
    pairs = pa.array([[("length", str(len(body)))] for body in bodies], TEXTS)
    return pa.RecordBatch.from_arrays([pa.array(bodies, pa.binary()), pairs], names=["body", "attributes"])


@given(
    st.lists(st.lists(st.binary(max_size=40), max_size=6), max_size=20),
    st.integers(1, 12),
    st.sampled_from([1, 300, 1 << 20]),
)
def test_the_same_rows_in_the_same_order(packs: list[list[bytes]], rows: int, size: int) -> None:
    given = [batch(*bodies) for bodies in packs if bodies]
    made = list(joined((batch(*bodies) for bodies in packs), rows, size))
    assert [row for one in made for row in one.to_pylist()] == [row for one in given for row in one.to_pylist()]
    for number, one in enumerate(made):
        parts = []
        while sum(part.num_rows for part in parts) < one.num_rows:
            parts.append(given.pop(0))
        assert is_full(parts, rows, size) or number == len(made) - 1
        assert not is_full(parts[:-1], rows, size)
    assert not given


def is_full(parts: list[pa.RecordBatch], rows: int, size: int) -> bool:
    return sum(part.num_rows for part in parts) >= rows or sum(part.nbytes for part in parts) >= size


def test_a_batch_is_full_by_rows() -> None:
    made = list(joined((batch(b"%d" % i) for i in range(10)), 4, 1 << 20))
    assert [one.num_rows for one in made] == [4, 4, 2]


def test_a_batch_is_full_by_bytes() -> None:
    made = list(joined((batch(bytes(1000)) for _ in range(10)), 1000, 3000))
    assert [one.num_rows for one in made] == [3, 3, 3, 1]


def test_a_large_batch_is_not_copied() -> None:
    given = [batch(*[b"x"] * 20), batch(*[b"y"] * 30)]
    assert all(made is one for made, one in zip(joined(given, 10, 1 << 20), given, strict=True))


def test_what_fails_behind_full_batches_comes_after_them() -> None:
    def packs():
        yield batch(b"a", b"b")
        raise OSError("gone")

    found = joined(packs(), 2, 1 << 20)
    assert next(found).num_rows == 2
    with pytest.raises(OSError, match="gone"):
        next(found)
