"""Names and attributes: what cannot travel is refused with the reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.errors import InvalidMessageError
from dataproxy.producer.ingest.names import (
    ATTRS_MAX_BYTES,
    FRAME_OWN_BYTES,
    NAME_MAX_BYTES,
    check_attrs,
    check_name,
)
from dataproxy.producer.ingest.reserved import RESERVED_ATTRS

# Reserved words of the protocol's description, written out a second time on purpose.
RESERVED = [
    "groupId",
    "streamId",
    "dt",
    "msgUUID",
    "cp",
    "cnt",
    "mt",
    "m",
    "sid",
    "t",
    "NodeIP",
    "messageId",
    "isAck",
    "proxySend",
    "errCode",
    "errMsg",
    "rtms",
    "sdkVersion",
    "_file_status_check",
    "_secretId",
    "_signature",
    "_timeStamp",
    "_nonce",
    "_userName",
    "_clientIP",
    "_encyVersion",
    "_encyAesKey",
    "mid",
    "wid",
    "rt",
    "dpIp",
    "dpIP",
    "syncSend",
    "partitionKey",
    "clientIp",
    "node1ip",
    "rtime1",
    "node2ip",
    "rtime2",
    "uniq",
    "topic",
    "auditVersion",
    "bid",
    "tid",
    "dup",  # of a hub's answer: an echo of the request would be read as the hub's
]


@pytest.mark.parametrize("name", ["g", "b_app.test-1", "a b", "x" * NAME_MAX_BYTES, "~!*'();:@+$,/?#[]"])
def test_good_names(name):
    assert check_name("group", name) == name


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "stream id '' is empty"),
        ("a&b", "stream id 'a&b' holds '&'"),
        ("a=b", "stream id 'a=b' holds '='"),
        ("a\0", "stream id 'a\\x00' holds '\\x00'"),
        ("a\nb", "stream id 'a\\nb' holds '\\n'"),
        (" a", "stream id ' a' begins or ends with a blank"),
        ("a ", "stream id 'a ' begins or ends with a blank"),
        ("größe", "stream id 'größe' is not ASCII; frames of type 7 can hold ASCII only; use message_type=5"),
        ("x" * 257, "(257 characters) has 257 bytes; at most 256 are allowed"),
        (b"g", "stream id b'g' is of type bytes; give text (str)"),
        (None, "stream id None is of type NoneType"),
    ],
)
def test_bad_names(name, problem):
    with pytest.raises(InvalidMessageError) as caught:
        check_name("stream", name)
    assert problem in str(caught.value)
    assert caught.value.code == "BAD_NAME"
    assert caught.value.details["kind"] == "stream"


def test_text_frames_carry_any_name():
    assert check_name("group", "größe", message_type=5) == "größe"
    with pytest.raises(InvalidMessageError, match="has 258 bytes"):
        check_name("group", "ö" * 129, message_type=5)
    with pytest.raises(InvalidMessageError, match="control characters"):
        check_name("group", "\ud800", message_type=5)


def test_attrs_become_text():
    assert check_attrs({}) == ""
    assert check_attrs({"b": "2", "a": "1"}) == check_attrs({"a": "1", "b": "2"}) == "a=1&b=2"
    assert check_attrs({"k": ""}) == "k="
    assert check_attrs({"k": "a b", "k k": " v"}) == "k=a b&k k= v"
    assert check_attrs({"k": "ö\n"}.fromkeys(["k"], "ö"), message_type=5) == "k=ö"


@pytest.mark.parametrize(
    ("attrs", "problem"),
    [
        ({"a": "1&b=2"}, "attribute 'a'='1&b=2': its value holds '&'; it cannot be sent; encode it"),
        ({"a": "1=2"}, "its value holds '='"),
        ({"a=b": "1"}, "attribute 'a=b'='1': its key holds '='"),
        ({"a&b": "1"}, "its key holds '&'"),
        ({"a": "\0"}, "its value holds '\\x00'"),
        ({"": "1"}, "its key is empty"),
        ({" a": "1"}, "it begins or ends with a blank or a control character"),
        ({"a": "1\t"}, "it begins or ends with a blank or a control character"),
        ({"a": 1}, "attribute 'a'=1: its value is of type int; give text, e.g. str(value)"),
        ({"a": b"1"}, "its value is of type bytes"),
        ({1: "a"}, "its key is of type int"),
        ({1: "a", "b": "c"}, "its key is of type int"),
        ({"a": "größe"}, "its value is not ASCII; frames of type 7 can hold ASCII only; use message_type=5"),
        ({"é": "1"}, "its key is not ASCII"),
        ({"a": "x" * 40000}, "the attributes take 40002 bytes, allowed are 31369 beside the ids"),
    ],
)
def test_bad_attrs(attrs, problem):
    with pytest.raises(InvalidMessageError) as caught:
        check_attrs(attrs)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert caught.value.code == "BAD_ATTRIBUTE"


@pytest.mark.parametrize("key", RESERVED)
def test_reserved(key):
    assert key in RESERVED_ATTRS
    with pytest.raises(InvalidMessageError, match=f"attribute '{key}'='1': its key is reserved; .") as caught:
        check_attrs({"fine": "1", key: "1"})
    assert caught.value.details["key"] == key


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("syncSend", "ordering='key'"),
        ("partitionKey", "ordering='key'"),
        ("isAck", "the option ack"),
        ("proxySend", "the option ack"),
        ("dt", "dt="),
        ("dtMs", "exact_time=True"),
        ("msgid", "message_id="),
        ("groupId", "group_id="),
        ("streamId", "stream_id"),
        ("cp", "the option compression"),
        ("mt", "message_type"),
    ],
)
def test_an_option_takes_the_place_of_a_reserved_name(key, option):
    with pytest.raises(InvalidMessageError) as caught:
        check_attrs({key: "true"})
    assert option in (caught.value.hint or "")


@pytest.mark.parametrize("key", ["f", "__addcol1__reptime", "traceparent", "IsAck", "x_dt"])
def test_names_that_only_travel_are_the_caller_s(key):
    assert check_attrs({key: "1"}) == f"{key}=1"


def test_the_mark_of_escapes_is_reserved():
    assert "_escaped" in RESERVED_ATTRS
    with pytest.raises(InvalidMessageError, match="readers use it as the list of values to unescape"):
        check_attrs({"fine": "1", "_escaped": "fine"})


def test_half_surrogates():
    with pytest.raises(InvalidMessageError, match="half of a surrogate pair"):
        check_attrs({"a": "\udc00"}, message_type=5)


def test_room_depends_on_the_ids():
    room = ATTRS_MAX_BYTES - len("groupId=g&streamId=s&") - FRAME_OWN_BYTES
    assert len(check_attrs({"a": "x" * (room - 2)}, ids_bytes=2)) == room
    with pytest.raises(InvalidMessageError, match=f"allowed are {room}"):
        check_attrs({"a": "x" * (room - 1)}, ids_bytes=2)


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=4), st.sampled_from([5, 7]))
def test_what_passes_can_be_read_back(attrs, message_type):
    """A parser like a server's (split at &, trim, exactly one =) reads back what was accepted."""
    try:
        text = check_attrs(attrs, message_type=message_type)
    except InvalidMessageError:
        return
    entries = [entry.strip(" \t\n\r\x0b\x0c") for entry in text.split("&")] if text else []
    assert all(entry.count("=") == 1 for entry in entries)
    assert dict(entry.split("=") for entry in entries) == attrs
    assert message_type == 5 or text.isascii()


@pytest.mark.parametrize("blank", [chr(code) for code in range(1, 33)] + ["\x1f\xa0", "\xa0\x01"])
@pytest.mark.parametrize(("key", "value"), [("{}a", "1"), ("a{}", "1"), ("a", "1{}"), ("{}", "1"), ("a", "{}")])
def test_attributes_are_keys_as_a_server_reads_them(blank: str, key: str, value: str) -> None:
    """It cuts everything up to the blank off an entry: what differs in that alone is one key to it, twice."""
    attrs = {"b": "2", key.format(blank): value.format(blank)}
    with pytest.raises(InvalidMessageError, match="ends") as caught:
        check_attrs(attrs, message_type=5)
    assert caught.value.code == "BAD_ATTRIBUTE"


def test_control_characters_inside_and_in_front_of_a_value_travel() -> None:
    assert check_attrs({"a\x01b": "\x02c\x03d"}) == "a\x01b=\x02c\x03d"
