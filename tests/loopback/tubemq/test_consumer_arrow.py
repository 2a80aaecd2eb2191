"""Packs as columns: the same messages as the records."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from tests.support.consumers import Opener, next_pack
from tests.support.tubeserver import TubeServer

COLUMNS = ["topic", "partition", "offset", "index", "id", "attributes", "body"]


def rows(pack: object) -> list[dict[str, object]]:
    """Return what the columns have to hold."""
    return [
        {
            "topic": one.topic, "partition": one.partition, "offset": pack.offset, "index": one.index, "id": one.id,
            "attributes": one.attributes, "body": one.body,
        }
        for one in pack
    ]  # fmt: skip


def plain(row: dict[str, object]) -> dict[str, object]:
    """Return a row with its attributes as a dictionary, whatever a library makes of maps."""
    pairs = row["attributes"]
    if isinstance(pairs, list) and pairs and isinstance(pairs[0], dict):
        pairs = [(one["key"], one["value"]) for one in pairs]
    return {**row, "attributes": dict(pairs)}


@pytest.fixture
def sent(tube: TubeServer) -> None:
    tube.put("one", b"first", attribute="$msgType$=a,k=v")
    tube.put("one", b"")
    tube.put("one", b"\x00\xff" * 500, attribute="x=ä")
    tube.put("one", b"last", attribute="$msgType$=b")


@pytest.mark.usefixtures("sent")
def test_columns_are_the_records(opened: Opener) -> None:
    pack = next_pack(opened())
    wanted = [plain(row) for row in rows(pack)]
    batch = pa.record_batch(pack.to_arrow())
    batch.validate(full=True)
    assert batch.schema.names == COLUMNS
    assert [plain(row) for row in batch.to_pylist()] == wanted
    table = pa.table(pack.to_arrow())
    assert [plain(row) for row in table.to_pylist()] == wanted
    assert len(pack.to_arrow()) == len(wanted)
    frame = pl.DataFrame(pack.to_arrow())
    assert frame.columns == COLUMNS
    assert [plain(row) for row in frame.to_dicts()] == wanted


@pytest.mark.usefixtures("sent")
def test_columns_outlive_pack_and_consumer(opened: Opener) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    wanted = rows(pack)
    arrow = pack.to_arrow()
    del pack
    consumer.close()
    batch = pa.record_batch(arrow)
    del arrow
    assert [plain(row) for row in batch.to_pylist()] == wanted


@pytest.mark.usefixtures("sent")
def test_capsules_that_nobody_uses_are_freed(opened: Opener) -> None:
    arrow = next_pack(opened()).to_arrow()
    for _ in range(3):
        arrow.__arrow_c_schema__()
        arrow.__arrow_c_array__()
        arrow.__arrow_c_stream__()
    assert pa.schema(arrow).names == COLUMNS
