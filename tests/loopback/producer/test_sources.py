"""Bodies from every kind of Python object, and every input that is refused before anything is accepted."""

import array
import ctypes

import numpy as np
import pytest

import dataproxy

ATTRS_MESSAGE = {"k": "v"}


@pytest.fixture
def producer(server):
    """Yield a producer whose bodies a test compares; the server's notes start empty."""
    server.frames.clear()
    with dataproxy.Producer(server.target, group_id="g") as p:
        yield p


def sent(server, producer, bodies, **options) -> list[bytes]:
    """Send a batch and return what arrived."""
    got = producer.send_batch("s", bodies, **options).result(20)
    assert got.ok
    return server.bodies()


RECORDS = np.array([(1, b"ab"), (2, b"cdef")], dtype=[("n", "<i4"), ("Other", "S4")])


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([b"a", b"bc"], [b"a", b"bc"]),
        ((b"a", b"bc"), [b"a", b"bc"]),
        ([bytearray(b"xy"), memoryview(b"z"), array.array("H", [1, 2])], [b"xy", b"z", b"\x01\0\x02\0"]),
        ([memoryview(b"abcdef")[::2]], [b"ace"]),
        ((c for c in (b"1", b"2")), [b"1", b"2"]),
        ({b"only": 1}, [b"only"]),
        (np.array([b"a", b"bcd"]), [b"a", b"bcd"]),
        (np.array([b"\0a\0b\0", b"bcd"], "S20"), [b"\0a\0b", b"bcd"]),
        (np.array([b"x" * n for n in range(1, 40)]), [b"x" * n for n in range(1, 40)]),
        (np.array([b"a", b"bcd", b"ef"])[::-2], [b"ef", b"a"]),
        (memoryview(np.array([b"a", b"bcd"])), [b"a", b"bcd"]),
        (np.array([b"a", b"bcd"], "S4").view("V4"), [b"a\0\0\0", b"bcd\0"]),
        (np.array([b"a", b"bcd"], "S4").view(np.uint8).reshape(2, 4), [b"a\0\0\0", b"bcd\0"]),
        (np.array([b"ab", b"cd", b"ef", b"gh"])[::2], [b"ab", b"ef"]),
        (np.array([b"ab", b"cd"])[::-1], [b"cd", b"ab"]),
        (np.array([b"abc", b"def"], dtype="V3"), [b"abc", b"def"]),
        (np.array([b"a", b"b", b"c"])[::2], [b"a", b"c"]),
        (np.array([b"a", b"b"], dtype="V1"), [b"a", b"b"]),
        (np.array([(1,), (2,)], dtype=[("n", "u1")]), [b"\1", b"\2"]),
        (RECORDS, [b"\1\0\0\0ab\0\0", b"\2\0\0\0cdef"]),
        (np.arange(6, dtype=np.uint8).reshape(2, 3), [b"\0\1\2", b"\3\4\5"]),
        (np.arange(12, dtype=np.uint8).reshape(4, 3)[::2], [b"\0\1\2", b"\6\7\x08"]),
        (np.arange(12, dtype=np.uint8).reshape(2, 6)[:, 1:3], [b"\1\2", b"\7\x08"]),
        (np.array([1, 2], dtype=">u2"), [b"\0\1", b"\0\2"]),
        (np.array([b"a", b"bb"], dtype=object), [b"a", b"bb"]),
        (np.frombuffer(b"abcd", dtype="S2"), [b"ab", b"cd"]),
        ([np.bytes_(b"q"), np.array([65, 66], np.uint8)], [b"q", b"AB"]),
        ([], []),
        (np.empty(0, "S3"), []),
    ],
)
def test_batches(server, producer, bodies, expected) -> None:
    assert sent(server, producer, bodies) == expected


@pytest.mark.parametrize("items", [[b"", b"a", b"bcd"], [b"bcd", b"", b"efg"], [b""], [b"\0", b"x"]])
def test_an_item_of_nothing_but_padding_is_an_empty_body(server, items) -> None:
    """As the same elements in a list are: NumPy gives them out without the NUL bytes at their end."""
    texts = np.array(items, "S3")
    assert texts.tolist() == [item.rstrip(b"\0") for item in items]
    server.frames.clear()
    with dataproxy.Producer(server.target, group_id="g") as p:
        for bodies in (texts, texts.tolist()):
            with pytest.raises(dataproxy.InvalidMessageError, match="empty") as caught:
                p.send_batch("s", bodies)
            assert caught.value.details["item"] == texts.tolist().index(b"")
        assert p.report().accepted == 0
    with dataproxy.Producer(server.target, group_id="g", empty_value="skip") as p:
        got = p.send_batch("s", texts).result(20)
        kept = [item for item in texts.tolist() if item]
        assert (got.accepted, got.skipped) == (len(kept), len(items) - len(kept))
    assert server.bodies() == kept


def repr_short(body: object) -> str:
    """Return an id for a parameter."""
    return f"{type(body).__name__}-{len(str(body))}"


class Subclass(bytes):
    """Bytes by another name."""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"plain", b"plain"),
        (Subclass(b"sub"), b"sub"),
        (bytearray(b"array"), b"array"),
        (memoryview(b"0123456789")[2:5], b"234"),
        (memoryview(b"0123456789")[::3], b"0369"),
        (memoryview(array.array("i", [1])), b"\1\0\0\0"),
        ((ctypes.c_char * 3)(b"a", b"b", b"c"), b"abc"),
        (np.arange(4, dtype=np.uint8), b"\0\1\2\3"),
        (np.arange(8, dtype=np.uint8)[::2], b"\0\2\4\6"),
        (b"x" * 300_000, b"x" * 300_000),
    ],
)
def test_single_bodies(server, producer, body, expected) -> None:
    producer.send_nowait("s", body)
    assert producer.send("s", body).result(20)
    handle = producer.stream("s")
    handle.send_nowait(body)
    assert handle.send(body).result(20)
    assert server.bodies() == [expected] * 4


def test_a_body_may_change_after_the_call(server, producer) -> None:
    body = bytearray(b"before")
    producer.send_nowait("s", body)
    body[:] = b"after!"
    body += b"and it may grow"
    producer.flush(20)
    assert server.bodies() == [b"before"]


OBJECTS = np.array([b"x"], dtype=object)
LARGE = b"x" * (1 << 20)
BAD_BODIES = [None, "text", "text" * 100, 1, 1.5, [b"x"], object(), b"", bytearray(), memoryview(b""), OBJECTS, LARGE]


@pytest.mark.parametrize("body", BAD_BODIES, ids=repr_short)
@pytest.mark.parametrize("call", ["send", "send_nowait", "stream.send", "stream.send_nowait"])
def test_a_bad_body_is_refused_and_nothing_accepted(producer, body, call) -> None:
    thing, name = (producer.stream("s"), call[7:]) if call.startswith("stream") else (producer, call)
    function = getattr(thing, name)
    with pytest.raises(dataproxy.InvalidMessageError) as caught:
        function(body) if thing is not producer else function("s", body)
    assert caught.value.hint
    assert not caught.value.retriable
    assert producer.stats().accepted == 0


def test_the_hint_for_text_says_how_to_encode(producer) -> None:
    with pytest.raises(dataproxy.InvalidMessageError, match="'héllo'") as caught:
        producer.send("s", "héllo")
    assert "encode" in caught.value.hint


@pytest.mark.parametrize("bad", [body for body in BAD_BODIES if body is not OBJECTS], ids=repr_short)
@pytest.mark.parametrize("where", [0, 57, 99])
def test_a_bad_body_in_a_batch_names_its_place_and_nothing_is_accepted(producer, bad, where) -> None:
    bodies = [b"good"] * 100
    bodies[where] = bad
    with pytest.raises(dataproxy.InvalidMessageError, match=rf"\b{where}\b") as caught:
        producer.send_batch("s", bodies)
    assert caught.value.details["item"] == where
    assert caught.value.details["accepted"] == 0
    assert producer.stats().accepted == 0


@pytest.mark.parametrize(
    "bodies",
    [
        b"one body",
        "text",
        bytearray(b"one"),
        5,
        None,
        np.array(["text", "more"]),
        np.array([1, 2], np.uint8),
        np.zeros((2, 2, 2), np.uint8),
        np.arange(8, dtype=np.uint8).reshape(2, 4)[:, ::2],
        np.arange(4, dtype="<i4").reshape(2, 2),
        np.array(["2020-01-01"], dtype="M8[s]"),
        np.array([(1, None)], dtype=[("n", "i4"), ("o", "O")]),
        np.array([(1, "t")], dtype=[("n", "i4"), ("t", "U3")]),
        np.zeros((3, 0), np.uint8),
        np.array([b"ok", b"no", None], dtype=object),
        memoryview(b"bytes"),
        iter([b"a", "b"]),
    ],
    ids=lambda b: f"{type(b).__name__}-{getattr(b, 'dtype', '')}{getattr(b, 'shape', '')}",
)
def test_what_is_no_batch_is_refused(producer, bodies) -> None:
    with pytest.raises(dataproxy.InvalidMessageError) as caught:
        producer.send_batch("s", bodies)
    assert caught.value.hint
    assert producer.stats().accepted == 0


@pytest.mark.parametrize("name", ["", "a&b", "a=b", "a\0b", "x" * 257, " s", "s\n", "ü", None, 5, b"s"])
def test_bad_names(producer, name) -> None:
    for call in (
        lambda: producer.send(name, b"x"),
        lambda: producer.send_nowait("s", b"x", group_id=name if name is not None else 7),
        lambda: producer.stream(name),
        lambda: producer.send_batch(name, [b"x"]),
    ):
        with pytest.raises(dataproxy.InvalidMessageError):
            call()
    assert producer.stats().accepted == 0


@pytest.mark.parametrize(
    "attrs",
    [{"a&": "1"}, {"a": "1=2"}, {"a": "\0"}, {"": "1"}, {"dt": "1"}, {"groupId": "x"}, {"a": 1}, {1: "a"}, {"a": "ü"}],
)
def test_bad_attributes(producer, attrs) -> None:
    for call in (
        lambda: producer.send("s", b"x", attrs=attrs),
        lambda: producer.send_batch("s", [b"x"], attrs=attrs),
        lambda: producer.stream("s", attrs=attrs),
    ):
        with pytest.raises(dataproxy.InvalidMessageError) as caught:
            call()
        assert caught.value.code == "BAD_ATTRIBUTE"
    assert producer.stats().accepted == 0


@pytest.mark.parametrize("dt", [-1, 1 << 60, "now", 1.5, True, __import__("datetime").datetime(2020, 1, 1)])
def test_bad_times(producer, dt) -> None:
    for call in (lambda: producer.send("s", b"x", dt=dt), lambda: producer.send_batch("s", [b"x"], dt=dt)):
        with pytest.raises(dataproxy.InvalidMessageError):
            call()
    assert producer.stats().accepted == 0


def test_attributes_travel_with_each_message(server, producer) -> None:
    producer.send_nowait("s", b"plain")
    producer.send_nowait("s", b"own", attrs={"k": "v", "a": "b"})
    producer.send_batch("s", [b"x", b"y"], attrs={"z": "1"})
    producer.stream("s", attrs={"bound": "yes"}).send_nowait(b"bound")
    producer.flush(20)
    got = dict(server.messages())
    assert set(got) == {b"plain", b"own", b"x", b"y", b"bound"}
    assert got[b"own"].items() >= {"k": "v", "a": "b"}.items()
    assert got[b"x"]["z"] == got[b"y"]["z"] == "1"
    assert got[b"bound"]["bound"] == "yes"
    assert not {"k", "z", "bound"} & set(got[b"plain"])
