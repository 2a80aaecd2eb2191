"""Messages of a producer, checked and written as they travel."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from dataproxy._core.remoting.outgoing import DELAY_LEVELS, Ids, encode, encode_batch
from dataproxy.errors import InvalidMessageError


def written(
    body: Any = b"x", tag: Any = "", keys: Any = (), properties: Any = None, delay: Any = 0, **more: Any
) -> Any:
    given = {} if properties is None else properties
    return encode("ID", body, tag, keys, given, delay, more.get("flag", 0), more.get("above", 0), more.get("more"))


def test_ids_rise_in_twelve_digits_and_take_as_many_of_a_larger_number() -> None:
    ids = Ids("AB", 0x9FF)
    assert [next(ids) for _ in range(2)] == ["AB0000000009FF", "AB000000000A00"]
    assert next(Ids("", (1 << 48) - 1)) == "F" * 12
    assert next(Ids("", 1 << 48)) == "0" * 12


def test_properties_are_written_in_one_order() -> None:
    found = written(tag="t", keys=("a", "b"), properties={"n": "v\u00e4"}, delay=3, more={"PGROUP": "g"})
    assert found.properties.decode() == (
        "UNIQ_KEY\x01ID\x02WAIT\x01true\x02TAGS\x01t\x02KEYS\x01a b\x02DELAY\x013\x02n\x01v\u00e4\x02PGROUP\x01g"
    )
    assert written().properties == b"UNIQ_KEY\x01ID\x02WAIT\x01true"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"body": "text"}, "not the text"), ({"body": b""}, "empty"), ({"body": bytes((4 << 20) + 1)}, "4194305"),
        ({"tag": "a||b"}, "divides tags"), ({"tag": "a\x01"}, "divide properties"), ({"tag": 5}, "tag 5"),
        ({"keys": "k"}, "not a tuple"), ({"keys": ("a b",)}, "divides keys"), ({"keys": ("",)}, "key ''"),
        ({"properties": [1]}, "no mapping"), ({"properties": {"": "v"}}, "property ''"),
        ({"properties": {"n": 5}}, "property 'n' 5"), ({"properties": {"TAGS": "v"}}, "belongs to the protocol"),
        ({"properties": {"n": "\ud800"}}, "surrogate"), ({"properties": {"n": "v" * 32768}}, "allowed are 32767"),
        ({"delay": len(DELAY_LEVELS) + 1}, "delay_level 19"), ({"delay": True}, "delay_level True"),
        ({"flag": 1 << 31}, "32 bits"), ({"flag": True}, "flag True"),
    ],
)  # fmt: skip
def test_what_cannot_travel_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidMessageError, match=said.replace("|", r"\|")):
        written(**given)


class Odd(bytes):
    """Bytes that say they are others."""

    def __bytes__(self) -> bytes:
        return Odd(b"other")


def test_what_is_sent_of_a_subclass_of_bytes_is_what_it_holds() -> None:
    found = written(Odd(b"held")).body
    assert found == b"held"
    assert type(found) is bytes


def test_a_view_that_is_too_large_is_not_copied() -> None:
    large = memoryview(np.broadcast_to(np.uint8(0), 1 << 40))  # one byte, again and again
    with pytest.raises(InvalidMessageError, match=f"a body has {1 << 40} bytes"):
        written(large)


@pytest.mark.parametrize("name", ["tag", "keys", "properties", "delay"])
def test_an_array_is_refused_in_words(name: str) -> None:
    with pytest.raises(InvalidMessageError, match="array"):
        written(**{name: np.array([1, 2])})


def test_a_body_is_compressed_where_that_makes_it_smaller() -> None:
    packed = written(bytearray(5000), above=4096)
    assert packed.sys_flag == 0x301 and zlib.decompress(packed.body) == bytes(5000)
    assert written(bytes(4095), above=4096).sys_flag == 0
    assert written(bytes(5000)).body == bytes(5000)


def test_a_batch_has_the_id_of_its_first_message_and_no_property_of_its_own() -> None:
    found = encode_batch("ID", b"items")
    assert (found.id, found.body, found.properties, found.flag, found.sys_flag) == (
        "ID",
        b"items",
        b"WAIT\x01true",
        0,
        0,
    )
