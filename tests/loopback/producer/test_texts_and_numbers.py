"""Subclasses of ``str`` stand for the text that they hold; numbers beyond all bounds get an error of ours."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataproxy
from dataproxy.config import PRODUCER, load_hub_config, load_producer_config
from dataproxy.problems import seconds, shown
from dataproxy.producer.ingest.names import check_attrs, check_item_attrs, check_name, plain_attrs


class Colour(str, enum.Enum):  # noqa: UP042 - it formats otherwise than StrEnum
    """What people use for constants: its ``__format__`` is not its value on every Python."""

    RED = "red"
    BLUE = "blue"


class Liar(str):
    """Text that says it is other text, of another size, made of other characters."""

    __slots__ = ()

    def __str__(self) -> str:
        return "x&dt=1&streamId=other"

    def __repr__(self) -> str:
        return "repr&x=1"

    def __format__(self, spec: str) -> str:
        return "format&x=1"

    def __iter__(self) -> Iterator[str]:
        return iter("iter&x=1")

    def __len__(self) -> int:
        return 1

    def __contains__(self, part: object) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other == "t"

    def __hash__(self) -> int:
        return hash("t")

    def encode(self, *args: Any, **options: Any) -> bytes:
        return b"encode&x=1"

    def strip(self, *args: Any) -> str:
        return "strip&x=1"

    def isascii(self) -> bool:
        return True

    def isprintable(self) -> bool:
        return True


@pytest.fixture
def producer(server):
    """Yield a producer whose messages a test compares; the server's notes start empty."""
    server.frames.clear()
    with dataproxy.Producer(server.target, group_id="g", ordering="key", key_buckets=64) as p:
        yield p


TEXTS = ((Colour.RED, "red"), (Liar("lie"), "lie"), ("plain", "plain"))


@pytest.mark.parametrize(("text", "value"), TEXTS, ids=["enum", "liar", "str"])
def test_texts_of_subclasses_travel_as_they_are(server, producer, text: str, value: str) -> None:
    producer.stream("t")  # what a liar says that it is
    producer.send_nowait("t", b"before")
    producer.flush(20)
    sent = [
        producer.send(text, b"a", attrs={text: text}),
        producer.stream(text, attrs={text: text}).send(b"b"),
        producer.stream("s", group_id=text).send(b"c", message_id=text, key=text),
        producer.send("s", b"d", group_id=text, message_id=text),
    ]
    producer.send_nowait(text, b"e")
    batch = producer.send_batch(text, [b"f"], message_ids=[text], key=text)
    assert producer.flush(20).ok
    assert [type(one.id) for one in sent] == [str] * 4
    assert [one.id for one in sent[2:]] == [value, value]
    assert batch.ids() == [value]
    found = {
        body: (attrs["groupId"], attrs["streamId"], {k: v for k, v in attrs.items() if k in ("msgid", value)})
        for body, attrs in server.messages()
    }
    assert found == {
        b"before": ("g", "t", {}), b"a": ("g", value, {value: value}), b"b": ("g", value, {value: value}),
        b"c": (value, "s", {"msgid": value}), b"d": (value, "s", {"msgid": value}), b"e": ("g", value, {}),
        b"f": ("g", value, {"msgid": value}),
    }  # fmt: skip


@given(st.sampled_from((Colour.RED, Liar("lie"))), st.sampled_from(("key", "value", "both")))
def test_attribute_text(text: str, where: str) -> None:
    value = str.__str__(text)
    attrs = {text if where != "value" else "k": text if where != "key" else "v"}
    expected = f"{value if where != 'value' else 'k'}={value if where != 'key' else 'v'}"
    assert check_attrs(attrs) == check_item_attrs(attrs, ()) == expected
    assert {type(part) for item in plain_attrs(attrs).items() for part in item} == {str}
    if where != "value":
        with pytest.raises(dataproxy.InvalidMessageError, match="its stream has an attribute of the same name"):
            check_item_attrs(attrs, {value})


@pytest.mark.parametrize("bad", ["a&b", "a=b", "a\0", "é", "a\n", " a", "dt"])
def test_what_a_liar_holds_is_checked(bad: str) -> None:
    with pytest.raises(dataproxy.InvalidMessageError):
        check_attrs({Liar(bad): "v"})
    if bad != "dt":
        with pytest.raises(dataproxy.InvalidMessageError):
            check_name("stream", Liar(bad))
        for value in ("a&b", "a=b", "a\0", "é"):
            with pytest.raises(dataproxy.InvalidMessageError):
                check_attrs({"k": Liar(value)})
    with pytest.raises(dataproxy.InvalidMessageError, match="another key has the same text"):
        check_attrs({Liar("k"): "1", "k": "2"})


@pytest.mark.parametrize("attrs", [5, "a=1", [("a", "1")], {"a"}, 10**400, 0, ""])
def test_what_is_no_mapping(producer, attrs: Any) -> None:
    for use in (
        lambda: producer.send("s", b"x", attrs=attrs),
        lambda: producer.send_batch("s", [b"x"], attrs=attrs),
        lambda: producer.stream("s", attrs=attrs),
    ):
        with pytest.raises(dataproxy.InvalidMessageError, match="attributes are a mapping of text to text") as caught:
            use()
        assert caught.value.code == "BAD_ATTRIBUTE"
    assert producer.stats().accepted == 0


@pytest.mark.parametrize("name", [5, None, b"s", ["s"], {"s": 1}, 10**400, object(), Liar("a&b"), ""])
def test_names_of_streams(producer, name: Any) -> None:
    uses: list[Callable[[], object]] = [
        lambda: producer.send(name, b"x"),
        lambda: producer.send_nowait(name, b"x"),
        lambda: producer.send_batch(name, [b"x"]),
        lambda: producer.stream(name),
        lambda: producer.send("s", b"x", group_id=name if name is not None else 5),
    ]
    for use in uses:
        with pytest.raises(dataproxy.InvalidMessageError) as caught:
            use()
        assert caught.value.code == "BAD_NAME"
    assert producer.stats().accepted == 0


def test_options_take_the_text_of_a_subclass() -> None:
    class Mode(str, enum.Enum):  # noqa: UP042
        RAISE = "raise"
        GROUP = "group"
        TIME = "5s"
        SIZE = "1MiB"
        YES = "yes"
        SEVEN = "7"

    config = load_producer_config(
        "tcp://h:1", group_id=Mode.GROUP, on_full=Mode.RAISE, linger=Mode.TIME, buffer_bytes=Mode.SIZE,
        nagle=Mode.YES, message_type=Mode.SEVEN, executors=Liar("2"),
    )  # fmt: skip
    assert (config.group_id, type(config.group_id), config.on_full, config.linger) == ("group", str, "raise", 5.0)
    assert (config.buffer_bytes, config.nagle, config.message_type, config.executors) == (1 << 20, True, 7, 2)


HUGE = [10**400, -(10**400), 10**5000, 10**30, 1 << 63, -(1 << 63) - 1, float("inf"), float("nan"), 1e308]


@pytest.mark.parametrize("number", HUGE, ids=lambda n: shown(n)[:30])
def test_huge_numbers_as_options(number: float) -> None:
    for option in PRODUCER.options:
        with pytest.raises(dataproxy.ConfigError) as caught:
            load_producer_config(**{"target": "tcp://h:1", "group_id": "g", option.name: number})
        assert option.name in str(caught.value)
        assert len(str(caught.value)) < 2000
    for name in ("port", "store_bytes", "sync_interval"):
        with pytest.raises(dataproxy.ConfigError):
            load_hub_config(**{name: number})


@pytest.mark.parametrize("number", HUGE, ids=lambda n: shown(n)[:30])
def test_huge_numbers_as_times_and_ids_and_keys(producer, number: float) -> None:
    handle = producer.stream("s")
    for use, code in (
        (lambda: producer.send("s", b"x", dt=number), "BAD_TIME"),
        (lambda: handle.send_nowait(b"x", dt=number), "BAD_TIME"),
        (lambda: handle.send_batch([b"x"], dt=number), "BAD_TIME"),
        (lambda: handle.send(b"x", message_id=number), "BAD_ID"),
        (lambda: handle.send_batch([b"x"], message_ids=[number]), "BAD_ID"),
        (lambda: handle.send_batch([b"x"], message_ids=number), "BAD_ID"),
        (lambda: handle.send(b"x", key=number), "BAD_KEY"),
        (lambda: handle.send_batch(number), "BAD_BODY"),
        (lambda: handle.send_batch([number]), "BAD_BODY"),
    ):
        with pytest.raises(dataproxy.InvalidMessageError) as caught:
            use()
        assert caught.value.code == code
        assert len(str(caught.value)) < 500
    assert producer.stats().accepted == 0


@pytest.mark.parametrize("number", [10**400, 10**5000, -(10**400), -(10**5000)], ids=["big", "bigger", "low", "lower"])
def test_huge_timeouts(producer, number: int) -> None:
    for use in (
        lambda: seconds(number), lambda: producer.flush(number), lambda: producer.close(number),
        lambda: producer.send("s", b"x").result(number), lambda: producer.send("s", b"x").exception(number),
        lambda: producer.send_batch("s", [b"x"]).result(number),
    ):  # fmt: skip
        with pytest.raises(dataproxy.ConfigError) as caught:
            use()
        assert caught.value.code == "BAD_TIMEOUT"
        assert "bits" in str(caught.value)
    assert not producer.closed


def test_huge_numbers_in_loops(server) -> None:
    async def main() -> None:
        async with dataproxy.AsyncProducer(server.target, group_id="g") as p:
            for number in (10**400, -1, 1.5, "1", None):
                with pytest.raises(dataproxy.ConfigError):
                    await p.room(number)  # type: ignore[arg-type]
            for call in (p.flush, p.close):
                with pytest.raises(dataproxy.ConfigError):
                    await call(10**400)

    asyncio.run(main())


@pytest.mark.parametrize("value", ["1", b"1", bytearray(b"1"), memoryview(b"1"), True, "soon"])
def test_timeouts_that_are_no_numbers(producer, value) -> None:
    for use in (
        lambda: seconds(value), lambda: producer.flush(value), lambda: producer.close(value),
        lambda: producer.send("s", b"x").result(value), lambda: producer.send_batch("s", [b"x"]).result(value),
    ):  # fmt: skip
        with pytest.raises(dataproxy.ConfigError) as caught:
            use()
        assert caught.value.code == "BAD_TIMEOUT"
