"""Attribute values of any text from a producer to a hub's readers."""

import contextlib
import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproxy import InvalidMessageError, Producer
from dataproxy._core.client.recordbatch import send_record_batch
from dataproxy.hub import Hub, open_store
from dataproxy.spark.attrcolumn import escape_column
from tests.io.scripted import Scripted

KIND = pa.map_(pa.string(), pa.string())
VALUES = st.text(st.sampled_from("%&=\n\0 ,aA2é𝄞") | st.characters(codec="utf-8"), max_size=8)
KEYS = ("a", "b,c", "d%2C", "e")
ATTRS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3)
STREAMS = itertools.count()  # each example has one of its own


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return a durable hub and a reader of its store."""
    path = tmp_path_factory.mktemp("store")
    with Hub(path) as running, contextlib.closing(open_store(path)) as reader:
        yield running, reader


@pytest.mark.parametrize("message_type", [7, 5])
@pytest.mark.parametrize("way", ["send", "rows"])
@settings(max_examples=20, deadline=None)
@given(rows=st.lists(ATTRS, min_size=1, max_size=6))
def test_any_text_comes_back(stored, message_type, way, rows):
    """A hub's records and record batches have the attributes that were sent."""
    hub, reader = stored
    stream = f"s{next(STREAMS)}"
    with Producer(hub.target, group_id="g", message_type=message_type, attribute_escape="percent") as p:
        if way == "send":
            for number, attrs in enumerate(rows):
                p.send_nowait(stream, b"%d" % number, attrs=attrs)
        else:
            columns = {
                "value": pa.array([b"%d" % number for number in range(len(rows))]),
                "attrs": pa.array([list(attrs.items()) for attrs in rows], KIND),
            }
            batch = escape_column(pa.record_batch(columns), 1)
            send_record_batch(p, batch, value=0, attrs=1, group="g", stream=stream)
    found = {int(record.body): record.attrs for record in hub.records("g", stream)}
    assert [
        {key: value for key, value in found[n].items() if key in KEYS or key == "_escaped"} for n in range(len(rows))
    ] == rows
    columns = pa.Table.from_batches(reader.record_batches("g", stream)).to_pydict()
    assert {int(body): dict(attrs) for body, attrs in zip(columns["body"], columns["attrs"], strict=True)} == found


def test_without_the_option_such_values_are_refused_and_marks_of_others_are_read():
    with Hub() as hub, Producer(hub.target, group_id="g") as p:
        for value in ("a&b", "é", "a ", "a\n"):
            with pytest.raises(InvalidMessageError):
                p.send("s", b"x", attrs={"k": value})
            attrs = pa.array([[("k", value)]], KIND)
            batch = pa.record_batch({"value": pa.array([b"x"]), "attrs": attrs})
            with pytest.raises(InvalidMessageError, match="attribute 'k'="):
                send_record_batch(p, batch, value=0, attrs=1, group="g", stream="s")
        p.send("s", b"x", attrs={"k": "a%26b", "_escaped": "k"})
        p.send("s", b"x", attrs={"k": "a%26b"})
        p.flush()
        assert sorted(record.attrs["k"] for record in hub.records("g", "s")) == ["a%26b", "a&b"]
        assert p.report().accepted == 2


def test_what_was_not_delivered_has_the_attributes_that_were_given():
    with Scripted(lambda peer, frame: None) as server:
        p = Producer(server.target, group_id="g", attribute_escape="percent", undelivered_bytes="1MiB")
        p.send("s", b"x", attrs={"k": "a&b"})
        p.close(0)
        assert [message.attrs for message in p.undelivered()] == [{"k": "a&b"}]
