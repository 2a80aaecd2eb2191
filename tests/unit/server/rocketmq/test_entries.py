"""Entries of the store as messages, by whichever protocol they came, and addresses as they name them."""

import pytest

from dataproxy.wire.rocketmq.messages import Host, StoredMessage
from tests.native.probe_remoting import entry, host, message
from tests.support.reference.rocketvectors import VECTORS

NOW_MS = 1_764_000_000_000
LOG, QUEUE, OFFSET = 9, 3, 77


def header(source: bytes = b"10.0.0.7", receive_ms: int = NOW_MS) -> bytes:
    """Return a header of the store."""
    texts = bytes((len(source),)) + source + b"\x09127.0.0.1"
    size = 48 + len(texts)
    head = b"\x02\x02\x02\x00" + size.to_bytes(2) + b"\0\0" + receive_ms.to_bytes(8) + bytes(32)
    return head + texts


def seen(value: bytes, stream: bytes = b"") -> StoredMessage:
    return StoredMessage.read(message(value, stream, b"T", LOG, QUEUE, OFFSET))


@pytest.mark.parametrize("vector", VECTORS["stored_messages"], ids=lambda one: one["name"])
def test_a_message_of_rocketmq_comes_out_as_it_went_in_but_for_its_place(vector):
    sent = StoredMessage.read(bytes.fromhex(vector["hex"]))
    value, stream = entry(bytes.fromhex(vector["hex"]), NOW_MS)
    found = seen(header() + value, stream)
    kept = {name: value for name, value in sent.properties.items() if name != "WAIT"}
    assert (found.body, dict(found.properties), found.flag) == (sent.body, kept, sent.flag)
    assert (found.born_ms, found.born, found.reconsume_times) == (sent.born_ms, sent.born, sent.reconsume_times)
    assert (found.prepared_offset, found.sys_flag) == (sent.prepared_offset, sent.sys_flag)
    assert stream.decode() == sent.properties.get("TAGS", "")


@pytest.mark.parametrize("host", [b"C0000", b"zz00020700002A9F", b"C00002070000ZZZZ"])
def test_an_attribute_that_is_only_begun_like_ours_says_nothing(host):
    """A producer of DataProxy may send any attribute: its container is one message, without marks or times of ours."""
    value = entry(bytes.fromhex(VECTORS["stored_messages"][0]["hex"]), NOW_MS)[0]
    text_n = int.from_bytes(value[18:20])
    text = value[20 : 20 + text_n]
    _, rest = text.split(b"&", 1)
    made = b"rocketmq=7,33,5,9,11,%s&%s" % (host, rest)
    changed = value[:18] + len(made).to_bytes(2) + made + value[20 + text_n :]
    found = seen(header() + changed)
    assert (found.body, found.flag, found.sys_flag, found.born_ms) == (changed, 0, 0, NOW_MS)
    assert (found.reconsume_times, found.prepared_offset) == (0, 0)


def test_the_place_is_that_of_the_store():
    value, stream = entry(bytes.fromhex(VECTORS["stored_messages"][0]["hex"]), NOW_MS)
    found = seen(header(receive_ms=NOW_MS + 5) + value, stream)
    assert (found.topic, found.queue, found.queue_offset, found.handle) == ("T", QUEUE, OFFSET, LOG << 39 | OFFSET)
    assert (found.stored_ms, found.store) == (NOW_MS + 5, Host("127.0.0.1", 9876))


@pytest.mark.parametrize("stream", [b"", b"view", "Ü".encode()])
def test_what_is_of_another_protocol_is_a_body_with_the_stream_for_a_tag(stream):
    found = seen(header() + b"whatever it is", stream)
    assert found.body == b"whatever it is"
    assert dict(found.properties) == ({"TAGS": stream.decode()} if stream else {})
    assert (found.born_ms, found.stored_ms, found.born, found.flag) == (NOW_MS, NOW_MS, Host("10.0.0.7", 0), 0)


@pytest.mark.parametrize(
    ("source", "born"),
    [
        (b"", Host()), (b"no address", Host()), (b"x" * 255, Host()), (b"::1", Host("::1", 0)),
        (b"2001:db8::7", Host("2001:db8::7", 0)), (b"::ffff:10.0.0.9", Host("10.0.0.9", 0)),
    ],
)  # fmt: skip
def test_where_it_came_from(source, born):
    assert seen(header(source) + b"x").born == born


def test_an_entry_without_a_header_is_a_body():
    for value in (b"", b"\x02", header()[:20]):
        assert seen(value).body == value


@pytest.mark.parametrize(
    ("address", "raw", "port"),
    [
        (b"192.0.2.7", bytes((192, 0, 2, 7)), 10911), (b"::1", bytes(15) + b"\x01", 9876),
        (b"::ffff:192.0.2.7", bytes((192, 0, 2, 7)), 65535),
        (b"2001:db8::7", b"\x20\x01\x0d\xb8" + bytes(11) + b"\x07", 0),
    ],
)  # fmt: skip
def test_addresses_are_bytes(address, raw, port):
    assert host(address, port) == (raw, port)
