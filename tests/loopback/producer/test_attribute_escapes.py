"""Attribute values of any text from a producer to a hub's readers."""

import contextlib
import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproxy import InvalidMessageError, Producer
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.hub import Hub, open_store
from dataproxy.spark.writing.attrcolumn import escape_column
from tests.support.scripted import Scripted

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
            batch, marked = escape_column(pa.record_batch(columns), 1)
            send_record_batch(p, batch, value=0, attrs=1, marked=marked, group="g", stream=stream)
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
        with Producer(hub.target, group_id="g", attribute_escape="percent") as other:
            other.send("s", b"x", attrs={"k": "a&b"})
        p.send("s", b"x", attrs={"k": "a%26b"})
        p.flush()
        assert sorted(record.attrs["k"] for record in hub.records("g", "s")) == ["a%26b", "a&b"]
        assert p.report().accepted == 1


OWN_MARK = {"k": "a%26b", "_escaped": "k"}
REFUSAL = (
    "attribute '_escaped'='k': its key is reserved; readers use it as the list of values to unescape;"
    " attribute_escape='percent' escapes values by itself"
)


@pytest.mark.parametrize("escape", ["none", "percent"])
def test_a_user_s_own_mark_is_refused_by_every_call(escape):
    """Readers would undo what nobody escaped: the value would not come back as it was sent."""
    table = pa.record_batch({"value": pa.array([b"x"]), "attrs": pa.array([list(OWN_MARK.items())], KIND)})
    with Hub() as hub, Producer(hub.target, group_id="g", attribute_escape=escape) as p:
        calls = {
            "send": lambda: p.send("s", b"x", attrs=OWN_MARK),
            "nowait": lambda: p.send_nowait("s", b"x", attrs=OWN_MARK),
            "batch": lambda: p.send_batch("s", [b"x"], attrs=OWN_MARK),
            "arrow": lambda: p.send_arrow("s", pa.array([b"x"]), attrs=OWN_MARK),
            "stream": lambda: p.stream("s", attrs=OWN_MARK),
            "bound": lambda: p.stream("s").send(b"x", attrs=OWN_MARK),
            "rows": lambda: send_record_batch(p, table, value=0, attrs=1, group="g", stream="s"),
        }
        for name, call in calls.items():
            with pytest.raises(InvalidMessageError) as caught:
                call()
            assert REFUSAL in str(caught.value).replace(" (item 0)", ""), name
            assert caught.value.code == "BAD_ATTRIBUTE"
        assert p.report().accepted == 0


def test_rows_with_a_mark_of_their_own_are_left_out_and_the_others_are_escaped():
    rows = [{"k": "a&b"}, OWN_MARK, {"k": "é", "_escaped": "k"}, {"_escaped": ""}, {"k": "100%"}, {"k": "é", "": "x"}]
    columns = {
        "value": pa.array([b"%d" % number for number in range(len(rows))]),
        "attrs": pa.array([list(attrs.items()) for attrs in rows], KIND),
    }
    refused = []
    with Hub() as hub:
        with Producer(hub.target, group_id="g", attribute_escape="percent") as p:
            batch, marked = escape_column(pa.record_batch(columns), 1)
            send_record_batch(p, batch, value=0, attrs=1, marked=marked, group="g", stream="s", refused=refused)
        found = {record.body: record.attrs["k"] for record in hub.records("g", "s")}
    assert found == {b"0": "a&b", b"4": "100%"}
    assert [(row, code) for row, code, _ in refused] == [(row, "BAD_ATTRIBUTE") for row in (1, 2, 3, 5)]
    assert all("'_escaped'" in reason for _, _, reason in refused[:3])
    assert "its key is empty" in refused[3][2]


def test_what_was_not_delivered_has_the_attributes_that_were_given():
    with Scripted(lambda peer, frame: None) as server:
        p = Producer(server.target, group_id="g", attribute_escape="percent", undelivered_bytes="1MiB")
        p.send("s", b"x", attrs={"k": "a&b"})
        p.close(0)
        assert [message.attrs for message in p.undelivered()] == [{"k": "a&b"}]
