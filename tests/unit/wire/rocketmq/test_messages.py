"""Stored messages as records: the vectors in both directions, batches, properties, and what is broken."""

import pytest

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.rocketmq.headers import read_header
from dataproxy.wire.rocketmq.messages import (
    Host,
    SendHeader,
    StoredMessage,
    read_batch,
    read_properties,
    send_fields,
    write_properties,
)  # fmt: skip
from tests.support.reference.rocketvectors import VECTORS


@pytest.mark.parametrize("vector", VECTORS["stored_messages"], ids=lambda one: one["name"])
def test_every_stored_message_is_read_and_written_to_the_byte(vector):
    data, fields = bytes.fromhex(vector["hex"]), vector["fields"]
    message = StoredMessage.read(data)
    assert message.write() == data
    assert (message.topic, message.queue, message.queue_offset) == (
        fields["topic"], fields["queueId"], fields["queueOffset"],
    )  # fmt: skip
    assert (message.handle, message.prepared_offset) == (
        fields["physicalOffset"], fields["preparedTransactionOffset"],
    )  # fmt: skip
    assert (list(message.born), message.born_ms) == (fields["bornHost"], fields["bornTimestamp"])
    assert dict(message.properties) == fields["properties"]


@pytest.mark.parametrize("vector", VECTORS["batch_bodies"])
def test_every_batch_is_read(vector):
    found = list(read_batch(bytes.fromhex(vector["hex"])))
    assert [(flag, body.decode(), dict(properties)) for flag, body, properties in found] == [
        (one["flag"], one["body"], one["properties"]) for one in vector["items"]
    ]


def test_no_prefix_and_no_changed_length_is_a_message():
    data = bytes.fromhex(VECTORS["stored_messages"][0]["hex"])
    for n in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            StoredMessage.read(data[:n])
    for at in (0, 1, 2, 3, 4, 84, 85, 86, 87):
        with pytest.raises(RemoteProtocolError):
            StoredMessage.read(data[:at] + bytes((data[at] ^ 0x40,)) + data[at + 1 :])


def test_no_part_of_a_batch_is_one():
    data = bytes.fromhex(VECTORS["batch_bodies"][0]["hex"])
    whole = list(read_batch(data))
    for n in range(1, len(data)):
        try:
            found = list(read_batch(data[:n]))
        except RemoteProtocolError:
            continue
        assert found == whole[: len(found)]
        assert len(found) < len(whole)


def test_addresses_of_ipv6_say_so_in_the_flags():
    message = StoredMessage("T", 0, b"m", born=Host("::1", 5), store=Host("127.0.0.1", 6))
    data = message.write()
    assert int.from_bytes(data[36:40]) == 16
    assert StoredMessage.read(data) == message


def test_topics_and_properties_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="128"):
        StoredMessage("x" * 128, 0, b"").write()
    with pytest.raises(ValueError, match="too long"):
        StoredMessage("T", 0, b"", {"a": "x" * 32767}).write()


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("A\x011\x02B\x012", {"A": "1", "B": "2"}), ("A\x011\x02", {"A": "1"}), ("A\x011\x02A\x012", {"A": "2"}),
        ("A\x01\x02B\x012", {"B": "2"}), ("A\x01b\x01c", {"A": "b\x01c"}), ("", {}), ("\x01x", {}), ("x", {}),
    ],
)  # fmt: skip
def test_properties(text, properties):
    assert read_properties(text) == properties
    assert read_properties(write_properties(properties)) == properties


def test_a_send_has_the_same_record_under_both_kinds_of_names():
    long = {"producerGroup": "p", "topic": "T", "defaultTopic": "D", "defaultTopicQueueNums": "4", "queueId": "1",
            "sysFlag": "0", "bornTimestamp": "7", "flag": "2", "properties": "A\x011", "reconsumeTimes": "3",
            "unitMode": "false", "maxReconsumeTimes": "9", "batch": "true"}  # fmt: skip
    short = dict(zip("abcdefghijklm", long.values(), strict=True))
    assert read_header(SendHeader, send_fields(10, long)) == read_header(SendHeader, send_fields(310, short))
    assert read_header(SendHeader, send_fields(320, short)).max_reconsume_times == 9
