"""Ids of messages: made by the producer, carried by the frame, the same wherever they are read."""

import os
import re
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.hub import Hub
from tests.support.scripted import Scripted, ack, good, refusal

PACK_ID = re.compile(r"[a-z2-7]{13}-[0-9a-f]{1,16}")


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


@pytest.mark.parametrize("message_type", [7, 5])
def test_one_id_wherever_it_is_read(hub, message_type):
    with dataproxy.Producer(hub.target, group_id="g", message_type=message_type) as p:
        sent = {}
        for i in range(20):
            body = b"%d" % i
            sent[body] = p.send("s", body, attrs={"k": "v"} if i % 3 == 0 else None)
            if i == 10:
                p.flush()
        p.flush()
        for delivery in sent.values():
            assert delivery.result().id == delivery.id
            pack, _, position = delivery.id.partition(".")
            assert PACK_ID.fullmatch(pack)
            assert int(position) == delivery.result().position
    stored = {record.body: record.message_id for record in hub.records("g")}
    assert stored == {body: delivery.id for body, delivery in sent.items()}
    assert len(set(stored.values())) == 20


def test_packs_of_type_3_carry_their_id(hub):
    with dataproxy.Producer(hub.target, group_id="g", message_type=3) as p:
        first = p.send("s", b"a")
        p.send_nowait("s", b"b")
    (record,) = hub.records("g")
    assert record.attrs["sid"] == first.id.removesuffix(".0")


def test_each_producer_has_its_own_instance(hub):
    ids = set()
    for _ in range(5):
        with dataproxy.Producer(hub.target, group_id="g") as p:
            ids.add(p.send("s", b"x").id)
    assert len({name[:13] for name in ids}) == 5
    assert {name[13:] for name in ids} == {"-1.0"}


def test_errors_and_callbacks_name_the_id():
    said = []
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 101))) as server:
        p = dataproxy.Producer(server.target, group_id="g", on_delivery=said.append)
        deliveries = [p.send("s", b"%d" % i) for i in range(3)]
        batch = p.send_batch("s", [b"x", b"y"])
        p.close()
    assert [result.error.id for result in said][:3] == [d.id for d in deliveries]
    for d in deliveries:
        assert d.exception().id == d.id == d.exception().details["id"]
    (failure,) = batch.result().failures
    assert failure.error.id == f"{deliveries[0].id[:-2]}.3"


def stored_ids(hub):
    """Return {body: id} of everything in the hub."""
    return {record.body: record.message_id for record in hub.records("g")}


def test_ids_of_the_caller(hub):
    said = []
    with dataproxy.Producer(hub.target, group_id="g", on_delivery=said.append) as p:
        s = p.stream("s", attrs={"shared": "1"})
        own = s.send(b"own", message_id="order-1")
        both = p.send("s", b"both", message_id="order/2", attrs={"k": "v"}, dt=1_700_000_000_000)
        s.send_nowait(b"silent", message_id="~" * 128)
        p.send_nowait("s", bytearray(b"array"), message_id="!")
        plain = s.send(b"plain", attrs={"k": "v"})
        p.flush()
    assert own.id == own.result().id == "order-1"
    assert both.id == both.result().id == "order/2"
    assert stored_ids(hub) == {
        b"own": "order-1", b"both": "order/2", b"silent": "~" * 128, b"array": "!", b"plain": plain.id,
    }  # fmt: skip
    assert {r.delivered.id for r in said} == {"order-1", "order/2", "~" * 128, "!", plain.id}
    attrs = {record.body: record.attrs for record in hub.records("g")}
    assert attrs[b"both"]["k"] == "v" and attrs[b"both"]["msgid"] == "order/2"
    assert attrs[b"own"]["shared"] == "1"


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_ids_of_a_batch(hub, compression):
    said = []
    bodies = [b"%06d" % i for i in range(3000)]
    ids = [f"id-{i}" if i % 2 else b"id-%d" % i for i in range(3000)]
    with dataproxy.Producer(
        hub.target, group_id="g", batch_messages=1000, compression=compression, on_delivery=said.append
    ) as p:
        batch = p.send_batch("s", bodies, message_ids=ids, attrs={"k": "v"})
        p.flush()
        plain = p.send_batch("s", [b"a", b"b"])
    want = [f"id-{i}" for i in range(3000)]
    assert batch.ids() == want
    assert plain.ids()[0].endswith(".0") and plain.ids()[1].endswith(".1")
    stored = stored_ids(hub)
    assert [stored[body] for body in bodies] == want
    assert [r.delivered.id for r in said] == want + plain.ids()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()])
def test_ids_of_arrow_data(hub, kind):
    table = pa.table({
        "value": pa.array([b"a", None, b"", b"b"], pa.binary()), "id": pa.array(["i-0", "i-1", "i-2", "i-3"], kind),
    })  # fmt: skip
    with dataproxy.Producer(hub.target, group_id="g", null_value="skip", empty_value="skip") as p:
        batch = p.send_arrow("s", pa.concat_tables([table, table.slice(3)]), id_column="id")
    assert batch.ids() == ["i-0", "i-3", "i-3"]
    assert sorted((r.body, r.message_id) for r in hub.records("g")) == [(b"a", "i-0"), (b"b", "i-3"), (b"b", "i-3")]


def test_ids_of_a_record_batch(hub):
    rows = pa.record_batch({
        "v": [b"%d" % i for i in range(6)],
        "s": ["s", "s", "t", "t", "s", "s"],
        "i": [f"row-{i}" for i in range(6)],
        "a": pa.array([None, [("k", "v")], None, None, [("k", "w")], None], pa.map_(pa.string(), pa.string())),
    })  # fmt: skip
    with dataproxy.Producer(hub.target, group_id="g") as p:
        assert send_record_batch(p, rows, value=0, stream_id=1, message_id=2, attrs=3, group="g")[:3] == (6, 0, 0)
        assert p.stats().accepted == 6
    assert {r.body: (r.message_id, r.stream_id, r.attrs.get("k")) for r in hub.records("g")} == {
        b"0": ("row-0", "s", None), b"1": ("row-1", "s", "v"), b"2": ("row-2", "t", None),
        b"3": ("row-3", "t", None), b"4": ("row-4", "s", "w"), b"5": ("row-5", "s", None),
    }  # fmt: skip


def test_failures_of_a_batch_name_the_callers_ids():
    def react(peer, frame):
        peer.send(refusal(frame, 101) if b"msgid=id-3&" in frame or b"msgid=id-3\0" in frame else ack(frame))

    with Scripted(react) as server:
        p = dataproxy.Producer(server.target, group_id="g", batch_messages=2)
        batch = p.send_batch("s", [b"x"] * 7, message_ids=[f"id-{i}" for i in range(7)])
        p.close()
    (failure,) = batch.result().failures
    assert (failure.first, failure.messages, failure.error.id) == (2, 2, "id-2")


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_callback_that_stands_still_keeps_ids_but_no_bodies(compression):
    """60 MB of bodies are delivered while the callback of the first stands still; then each is told of by its id."""
    go = threading.Event()
    told: list[str] = []

    def slow(result: dataproxy.DeliveryResult) -> None:
        go.wait(60)
        told.append(result.delivered.id)

    def react(peer, frame):
        server.frames.clear()
        good(peer, frame)

    body = os.urandom(100) * 100
    with Scripted(react) as server:
        p = dataproxy.Producer(
            server.target, group_id="g", on_delivery=slow, compression=compression, buffer_bytes="2MiB"
        )  # fmt: skip
        before = resident()
        try:
            for i in range(6000):
                p.send_nowait("s", body, message_id=f"id-{i}")
            p.flush()
            grown = resident() - before
        finally:
            go.set()
            p.close()
    assert told == [f"id-{i}" for i in range(6000)]
    if not os.environ.get("DATAPROXY_SANITIZER"):  # it keeps what was freed for a while
        assert grown < 30e6


def resident() -> int:
    """Return the bytes of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_buffer_is_counted_with_ids(hub):
    each = 8 + 100 + len("msgid=id-00")
    p = dataproxy.Producer(hub.target, group_id="g", linger=60, buffer_bytes=20 * each, on_full="raise")
    ids = [f"id-{i:02}" for i in range(21)]
    with pytest.raises(dataproxy.BufferFullError):
        p.send_batch("s", [b"x" * 100] * 21, message_ids=ids)
    assert p.stats().accepted == 0
    p.send_batch("s", [b"x" * 100] * 20, message_ids=ids[:20])
    assert p.close().delivered == 20


TRAVEL = "use printable ASCII without blanks, '&', '=' and '|' [BAD_ID]"
BAD = [
    (5, "a message id is text, not 'int'; give text, e.g. str(value) [BAD_ID]"),
    (b"x", "a message id is text, not 'bytes'; give text, e.g. str(value) [BAD_ID]"),
    ("", "a message id is empty; leave it out: then the message gets an id [BAD_ID]"),
    (
        "x" * 129,
        f"the message id {'x' * 24!r}... has 129 characters; at most 128 are allowed; use a digest [BAD_ID]",
    ),
    ("a b", f"the message id 'a b' holds ' '; {TRAVEL}"),
    ("a&b", f"the message id 'a&b' holds '&'; {TRAVEL}"),
    ("a|b", f"the message id 'a|b' holds '|'; {TRAVEL}"),
    ("a\0b", f"the message id 'a\\x00b' holds '\\x00'; {TRAVEL}"),
    ("é", f"the message id 'é' holds 'é'; {TRAVEL}"),
]


@pytest.mark.parametrize(("value", "text"), BAD)
def test_bad_ids(hub, value, text):
    with dataproxy.Producer(hub.target, group_id="g") as p:
        for call in (p.send, p.send_nowait):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                call("s", b"x", message_id=value)
            assert str(caught.value) == text
        if isinstance(value, bytes):
            return
        with pytest.raises(dataproxy.InvalidMessageError) as caught:
            p.send_batch("s", [b"x", b"y"], message_ids=["good", value])
        assert str(caught.value) == text.replace("; ", " (item 1); ", 1)
        assert caught.value.details["item"] == 1
        assert p.report().accepted == 0


def test_bad_ids_of_batches(hub):
    with dataproxy.Producer(hub.target, group_id="g") as p:

        def said(call, *args, **kwargs):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                call(*args, **kwargs)
            return str(caught.value)

        assert said(p.send_batch, "s", [b"x"], message_ids=[]) == (
            "there are 0 message ids for 1 bodies; give one id for each body [BAD_ID]"
        )
        assert said(p.send_batch, "s", [b"x"], message_ids="x") == (
            "message_ids is a sequence of ids, not one 'str'; give one id for each body [BAD_ID]"
        )
        assert said(p.send_batch, "s", [b"x"], message_ids=7) == (
            "message_ids is a sequence of ids, not 'int'; give one id for each body [BAD_ID]"
        )
        table = pa.table({"value": [b"x", b"y"], "id": ["a", None]})
        null = "a message id is null (item 1); fill it, or send without ids: then each message gets an id [BAD_ID]"
        assert said(p.send_arrow, "s", table, id_column="id") == null
        assert said(send_record_batch, p, table.to_batches()[0], value=0, message_id=1, group="g", stream="s") == null
        assert said(p.send_arrow, "s", table, id_column="no") == (
            "there is no column 'no'; the columns are ['value', 'id'] [BAD_COLUMN]"
        )
        assert p.report().accepted == 0


@pytest.mark.parametrize("message_type", [5, 3])
def test_ids_need_type_7(hub, message_type):
    text = (
        "message ids need frames of type 7 whose items are not joined, and this producer has others; "
        "use protocol='tcp' and message_type=7 without joined_lines, or put the id into the body [BAD_ID]"
    )
    table = pa.table({"value": [b"x"], "id": ["a"]})
    with dataproxy.Producer(hub.target, group_id="g", message_type=message_type) as p:
        for call in (
            lambda: p.send("s", b"x", message_id="a"),
            lambda: p.send_batch("s", [b"x"], message_ids=["a"]),
            lambda: p.send_arrow("s", table, id_column="id"),
            lambda: send_record_batch(p, table.to_batches()[0], value=0, message_id=1, group="g", stream="s"),
        ):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                call()
            assert str(caught.value) == text


def test_an_item_attribute_may_not_hide_behind_one_of_the_frame(hub):
    with dataproxy.Producer(hub.target, group_id="g") as p:
        s = p.stream("s", attrs={"env": "live"})
        for call in (s.send, s.send_nowait, lambda body, attrs: s.send_batch([body], attrs=attrs)):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                call(b"x", attrs={"a": "1", "env": "test"})
            assert str(caught.value) == (
                "attribute 'env'='test': its stream has an attribute of the same name, and consumers would see only"
                " that "
                "one; rename one of them [BAD_ATTRIBUTE]"
            )
        s.send(b"x", attrs={"a": "1"}).result()
        for name in ("msgid", "sid"):
            with pytest.raises(dataproxy.InvalidMessageError, match="reserved"):
                p.stream("s", attrs={name: "1"})


def test_a_body_beside_an_id_that_no_frame_holds(hub):
    with dataproxy.Producer(hub.target, group_id="g", max_frame_bytes=4096, batch_bytes=2048) as p:
        size = 4096
        while True:
            try:
                p.send("s", b"x" * size, message_id="i" * 50).result()
                break
            except dataproxy.InvalidMessageError as error:
                size = error.details["limit"]
        with pytest.raises(dataproxy.InvalidMessageError):
            p.send_batch("s", [b"x" * (size + 1)], message_ids=["i" * 50])
        p.send_batch("s", [b"y" * size], message_ids=["i" * 50])
        with pytest.raises(dataproxy.InvalidMessageError):
            p.send_batch("s", [b"x" * size], message_ids=["i" * 51])
