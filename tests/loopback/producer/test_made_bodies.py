"""Bodies that are made of columns: which rows are null, which are empty, and which cannot be told apart."""

import pyarrow as pa
import pytest

from dataproxy import Producer
from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.errors import InvalidMessageError
from dataproxy.hub import Hub
from dataproxy.rows.zones import zone_table

NULLS = pa.record_batch([pa.array([None, "x"]), pa.array([None, 1])], names=["a", "b"])
ONE = pa.record_batch([pa.array([None, "x"])], names=["a"])
EMPTY = pa.record_batch([pa.array(["", "x"])], names=["a"])
BOTH = pa.record_batch([pa.array(["", None]), pa.array([1, 2])], names=["a", "b"])


def send(producer, batch, form, **given):
    encoder = BodyEncoder(form, range(batch.num_columns), zone_table=zone_table, separator="&", **given)
    return send_record_batch(producer, batch, encoder=encoder, group="g", stream="s")[1:3]


@pytest.mark.parametrize(("form", "batch"), [("kv", NULLS), ("kv", ONE), ("csv", ONE)])
def test_a_row_of_nulls_follows_null_value(form, batch):
    with Hub() as hub, Producer(hub.target, group_id="g", null_value="skip") as producer:
        assert send(producer, batch, form) == (1, 0)
        producer.flush()
        assert [record.body[-1:] for record in hub.records("g")] in ([b"x"], [b"1"])


@pytest.mark.parametrize(("form", "batch"), [("kv", NULLS), ("kv", ONE), ("csv", ONE)])
def test_a_row_of_nulls_does_not_follow_empty_value(form, batch):
    with (
        Hub() as hub,
        Producer(hub.target, group_id="g", empty_value="skip") as producer,
        pytest.raises(InvalidMessageError, match="null"),
    ):
        send(producer, batch, form)


def test_a_row_of_one_empty_text_follows_empty_value():
    with Hub() as hub, Producer(hub.target, group_id="g", empty_value="skip") as producer:
        assert send(producer, EMPTY, "csv", tells_nulls=True) == (0, 1)


def test_a_json_row_of_nulls_is_an_object():
    with Hub() as hub:
        with Producer(hub.target, group_id="g") as producer:
            assert send(producer, NULLS, "json") == (0, 0)
        assert [record.body for record in hub.records("g")] == [b"{}", b'{"a":"x","b":1}']


def test_a_value_that_reads_like_a_null_is_named_with_the_way_out():
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:
        with pytest.raises(InvalidMessageError, match=r"equals nullText.*set nullText to a text"):
            send(producer, BOTH, "csv", tells_nulls=True)
        assert send(producer, BOTH, "csv") == (0, 0)
