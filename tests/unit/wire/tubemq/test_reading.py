"""Messages of bytes that servers send."""

from __future__ import annotations

import pytest

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.reading import read_message

NAME = "HeartResponseM2C"


def heartbeat(**fields: object) -> bytes:
    whole = {"success": True, "errCode": 200, "errMsg": "OK!", **fields}
    return bytes(getattr(messages, NAME)(**whole).SerializeToString())


def test_a_message_is_read() -> None:
    event = messages.EventProto(rebalanceId=1, opType=10, status=0, subscribeInfo=["c@g#1:h:8123#t:0"])
    found = read_message(NAME, heartbeat(event=event))
    assert (found.errCode, list(found.event.subscribeInfo)) == (200, ["c@g#1:h:8123#t:0"])


@pytest.mark.parametrize("data", [b"\xff", heartbeat()[:-4], b"", heartbeat().replace(b"OK!", b"\xff\xfe!")])
def test_what_is_none_is_none(data: bytes) -> None:
    assert read_message(NAME, data) is None


def test_a_text_that_is_not_utf8_is_found_where_it_is_nested() -> None:
    event = messages.EventProto(rebalanceId=1, opType=10, status=0, subscribeInfo=["one", "two"])
    data = heartbeat(event=event)
    assert read_message(NAME, data) is not None
    assert read_message(NAME, data.replace(b"two", b"\xc3(!")) is None
