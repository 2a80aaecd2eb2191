"""Packs as columns: the same as the records, for any pack; capsules that are used, twice used, and not used."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dataproxy._core.consumer.arrowbatch import ArrowBatch
from tests.native.probe_fetch import pack_of
from tests.support.fetching import got, message

ATTRIBUTES = [
    b"", b"$msgType$=a,$msgTime$=202611251200", b"k=v,k=w", b"k=", b"=v", b"k", b",,", b"k=v=w", "größe=ü".encode(),
    b"k=\xff\xfe,good=yes", b"\xc3=x", b"a=\xc3,b=\xa4",
]  # fmt: skip


def pack(seed: int, n: int) -> Any:
    """Return a pack of random messages."""
    dice = random.Random(seed)
    messages = [
        message(dice.randbytes(dice.choice([0, 1, 7, 300])), dice.choice(ATTRIBUTES), dice.getrandbits(62),
                broken=dice.random() < 0.1)
        for _ in range(n)
    ]  # fmt: skip
    filters = [b"a"] if seed % 3 == 0 else []
    return pack_of(got(messages, currOffset=28 * seed), "größe", "b:größe:1", filters)


def texts(attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes that are UTF-8; columns have no others."""
    return {k: v for k, v in attributes.items() if not any("\udc80" <= c <= "\udcff" for c in k + v)}


def firsts(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return attributes as records have them: the first of a name counts."""
    return dict(reversed(pairs))


def same(batch: Any, made: Any) -> None:
    """Compare columns with records."""
    batch.validate(full=True)
    assert batch.num_rows == len(made)
    columns = batch.to_pydict()
    assert columns["topic"] == [made.topic] * len(made)
    assert columns["partition"] == [made.partition] * len(made)
    assert columns["offset"] == [made.offset] * len(made)
    assert columns["index"] == list(range(len(made)))
    assert columns["id"] == [one.id for one in made]
    assert columns["body"] == [one.body for one in made] == made.bodies()
    assert [firsts(one) for one in columns["attributes"]] == [texts(one.attributes) for one in made]


@pytest.mark.parametrize("seed", range(60))
def test_columns_are_the_records(seed: int) -> None:
    made = pack(seed, random.Random(seed).choice([0, 1, 2, 50]))
    same(pa.record_batch(made.to_arrow()), made)
    reader = pa.RecordBatchReader.from_stream(made.to_arrow())
    same(reader.read_next_batch(), made)
    with pytest.raises(StopIteration):
        reader.read_next_batch()
    assert reader.schema == pa.schema(made.to_arrow())


def test_runs_of_the_same_attributes() -> None:
    """They are taken apart once; those between, as long but others, are not theirs."""
    texts = [b"k=v,l=w", b"k=v,l=w", b"k=v,l=w", b"k=v,l=x", b"", b"", b"k=v,l=w", b"k=\xff,l=w", b"k=\xff,l=w", b"k=v"]
    made = pack_of(got([message(b"%d" % n, one) for n, one in enumerate(texts)]), "t", "b:t:1")
    same(pa.record_batch(made.to_arrow()), made)


@pytest.mark.parametrize("seed", range(30))
def test_some_columns_of_the_first_rows(seed: int) -> None:
    made = pack(seed, 40)
    dice = random.Random(seed)
    names = tuple(dice.sample(["topic", "partition", "pack_offset", "index", "id", "attributes", "body"], 4))
    rows = dice.randrange(len(made) + 1)
    batch = pa.record_batch(ArrowBatch(made, names, rows))
    batch.validate(full=True)
    whole = pa.record_batch(made.to_arrow()).slice(0, rows)
    for name, column in zip(names, batch.columns, strict=True):
        assert column.to_pylist() == whole["offset" if name == "pack_offset" else name].to_pylist()


def test_offsets_and_times_are_columns_too() -> None:
    texts = [b"$msgTime$=202402291234,k=v", b"$msgTime$=202402291234,k=v", b"", b"$msgTime$=197001010001", b"k=v"]
    made = pack_of(got([message(b"", one) for one in texts]), "t", "b:t:1")
    batch = pa.record_batch(ArrowBatch(made, ("offset", "time", "time_utc"), 5, 280))
    batch.validate(full=True)
    leap = 1_709_210_040_000_000
    assert batch.columns[0].to_pylist() == [280, 308, 336, 364, 392]
    assert [batch.columns[n].cast("int64").to_pylist() for n in (1, 2)] == [[leap, leap, None, 60_000_000, None]] * 2
    assert [str(column.type) for column in batch.columns] == ["int64", "timestamp[us]", "timestamp[us, tz=UTC]"]
    assert pa.record_batch(ArrowBatch(made, ("offset",))).column(0).null_count == 5


def test_columns_that_a_pack_does_not_have() -> None:
    made = pack_of(got([message(b"a")]), "t", "b:t:1")
    with pytest.raises(KeyError, match="value"):
        ArrowBatch(made, ("value",))
    for rows in (-1, 2):
        with pytest.raises(ValueError, match=f"has 1 messages, and not {rows}"):
            ArrowBatch(made, ("id",), rows)
    with pytest.raises(ValueError, match="17 columns are too many"):
        ArrowBatch(made, ("id",) * 17)


def test_the_schema_is_that_of_the_batch() -> None:
    schema = pa.schema(pack(1, 0).to_arrow())
    assert schema.names == ["topic", "partition", "offset", "index", "id", "attributes", "body"]
    assert not any(field.nullable for field in schema)
    assert pa.record_batch(pack(1, 3).to_arrow()).schema == schema


def test_a_capsule_is_used_once_and_a_batch_as_often_as_one_likes() -> None:
    made = pack(1, 5)
    arrow = made.to_arrow()
    schema, array = arrow.__arrow_c_array__()
    batch = pa.RecordBatch._import_from_c_capsule(schema, array)
    with pytest.raises(ValueError, match="released"):
        pa.RecordBatch._import_from_c_capsule(schema, array)
    stream = arrow.__arrow_c_stream__()
    reader = pa.RecordBatchReader._import_from_c_capsule(stream)
    with pytest.raises(ValueError, match="released"):
        pa.RecordBatchReader._import_from_c_capsule(stream)
    same(batch, made)
    same(reader.read_next_batch(), made)
    same(pa.record_batch(arrow), made)
    arrow.__arrow_c_stream__(), arrow.__arrow_c_array__(), arrow.__arrow_c_schema__()  # not used


def test_columns_outlive_their_pack() -> None:
    made = pack(1, 5)
    expected = made.bodies()
    batch = pa.record_batch(made.to_arrow())
    del made
    gc.collect()
    assert batch.column("body").to_pylist() == expected


def resident() -> int:
    """Return the pages of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1])


def test_nothing_is_left_of_capsules_of_any_fate() -> None:
    body = got([message(bytes(1000), b"k=v")] * 300)

    def once() -> None:
        arrow = pack_of(body, "t", "b:t:1").to_arrow()
        arrow.__arrow_c_array__(), arrow.__arrow_c_stream__(), arrow.__arrow_c_schema__()
        pa.record_batch(arrow)
        pa.RecordBatchReader.from_stream(arrow)  # its batch is not read
        pa.RecordBatchReader.from_stream(arrow).read_next_batch()

    for _ in range(20):
        once()
    gc.collect()
    before = resident()
    for _ in range(200):  # of a third of a megabyte each
        once()
    gc.collect()
    kept = 300_000 if "ASAN_OPTIONS" in os.environ else 0  # which keeps what was freed for a while
    assert resident() - before < 4096 + kept


def test_columns_of_two_gigabytes_are_refused() -> None:
    body = got([message(b"")] * 300)
    with pytest.raises(MemoryError):
        pack_of(body, "t" * 8_000_000, "b:t:1").to_arrow().__arrow_c_array__()
