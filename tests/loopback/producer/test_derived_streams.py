"""A class derived from Producer with a ``stream`` of its own: what is sent by name uses it, rows never depend on it."""

from __future__ import annotations

import gc
from typing import Any

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.hub import Hub

NAMES = [f"s{i}" for i in range(100)]
TABLE = pa.table({"name": NAMES, "value": ["x"] * len(NAMES)})


class Marked(dataproxy.Producer):
    """Adds an attribute to every handle."""

    def stream(self, stream_id: str, **options: Any) -> Any:
        return super().stream(stream_id, **{**options, "attrs": {"app": "web"}})


class Renamed(dataproxy.Producer):
    """Gives other names to handles."""

    def stream(self, stream_id: str, **options: Any) -> Any:
        return super().stream(f"my-{stream_id}", **options)


class Borrowed(dataproxy.Producer):
    """Gives whatever it was told to give."""

    given: Any = None

    def stream(self, stream_id: str, **options: Any) -> Any:
        return self.given(stream_id) if callable(self.given) else self.given


@pytest.fixture
def hub() -> Any:
    with Hub() as running:
        yield running


@pytest.mark.parametrize("given", [None, object(), "s", b""])
@pytest.mark.parametrize("call", ["send", "send_nowait", "send_batch", "send_arrow"])
def test_what_is_no_stream_is_refused(hub: Hub, given: object, call: str) -> None:
    with Borrowed(hub.target, group_id="g") as producer:
        producer.given = given
        with pytest.raises(TypeError, match=r"^Borrowed\.stream returned .*; a derived class returns a Stream of"):
            getattr(producer, call)("s", [b"x"] if call == "send_batch" else b"x")


def test_a_stream_of_another_producer_is_refused(hub: Hub) -> None:
    with dataproxy.Producer(hub.target, group_id="g") as owner:
        with Borrowed(hub.target, group_id="g") as producer:
            producer.given = owner.stream
            for _ in range(2):
                with pytest.raises(TypeError, match="a Stream of its own producer"):
                    producer.send_rows(None, TABLE, "csv", stream_column="name")
                with pytest.raises(TypeError, match="a Stream of its own producer"):
                    producer.send_nowait("s0", b"x")
            assert producer.flush().accepted == 0
        del producer
        gc.collect()
        for name in NAMES:
            owner.send_nowait(name, b"y")
        assert owner.flush().delivered == len(NAMES)


@pytest.mark.parametrize(("kind", "sent_to", "mark"), [(Marked, "s7", "web"), (Renamed, "my-s7", None)])
def test_rows_go_to_the_streams_that_they_name(hub: Hub, kind: Any, sent_to: str, mark: str | None) -> None:
    with kind(hub.target, group_id="g") as producer:
        assert producer.send_rows(None, TABLE, "csv", stream_column="name").result(30).delivered == len(NAMES)
        producer.send_nowait("s7", b"by name")
    rows = {r.stream_id: r for r in hub.records("g") if r.body == b"x"}
    assert sorted(rows) == sorted(NAMES)
    assert {r.attrs.get("app") for r in rows.values()} == {None}
    by_name = [r for r in hub.records("g") if r.body == b"by name"]
    assert [(r.stream_id, r.attrs.get("app")) for r in by_name] == [(sent_to, mark)]


@pytest.mark.parametrize("kind", [Marked, Renamed])
@pytest.mark.parametrize("by_table", [True, False])
def test_rows_with_names_that_python_judges_arrive(hub: Hub, kind: Any, by_table: bool) -> None:
    table = pa.table({"name": ["späße", "größe"], "value": ["x", "y"]})
    with kind(hub.target, group_id="g", message_type=5) as producer:
        if by_table:
            producer.send_rows(None, table, "csv", stream_column="name")
        else:
            send_record_batch(producer, table.to_batches()[0], value=1, stream_id=0, group="g")
    assert sorted(r.stream_id for r in hub.records("g")) == ["größe", "späße"]
