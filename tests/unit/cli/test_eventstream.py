"""Messages of server-sent events, as the standard has them."""

from __future__ import annotations

import pytest

from dataproxy.cli.hub.eventstream import Message, messages


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"", []),
        (b": hello\nretry: 1000\n\n", []),
        (b'id: r-1\ndata: {"a": 1}\n\n', [Message("message", '{"a": 1}', "r-1")]),
        (b"event: missed\ndata: 7\n\n: alive\n\ndata\n\n", [Message("missed", "7", ""), Message("message", "", "")]),
        (b"data: a\r\ndata:b\r\ndata:  c\r\n\r\n", [Message("message", "a\nb\n c", "")]),
        (b"data: \xff\xc3\xa9\n\n", [Message("message", "\ufffdé", "")]),
        (b"id: r-2\n\ndata: of no id\n\n", [Message("message", "of no id", "")]),
        (b"data: whole\n\nid: r-3\ndata: cut off\n", [Message("message", "whole", "")]),
    ],
)
def test_messages_of_a_stream(text: bytes, wanted: list[Message]) -> None:
    assert list(messages(text.splitlines(keepends=True))) == wanted
