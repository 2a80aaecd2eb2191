"""Messages of server-sent events, as the standard has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataproxy.cli.hub.eventstream import MESSAGE_MOST_BYTES, Message, lines, messages
from dataproxy.errors import HubError


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


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_lines_of_a_stream_that_comes_in_parts(size: int) -> None:
    text = b"a\r\n\nbb\rb\nccc\n\ncut off"
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(lines(parts)) == [b"a\r", b"", b"bb\rb", b"ccc", b""]


def test_a_line_that_does_not_end_is_refused_as_soon_as_it_is_too_long() -> None:
    taken = 0

    def parts() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * (MESSAGE_MOST_BYTES // 4)

    with pytest.raises(HubError, match="more than 1,048,576 bytes"):
        list(lines(parts()))
    assert taken == 5


def test_a_message_may_be_as_long_as_the_limit_says_and_comments_do_not_count() -> None:
    longest = b"data:" + b"x" * (MESSAGE_MOST_BYTES - 5)
    (found,) = messages([b": a comment", b": another one", longest, b""])
    assert len(found.data) == MESSAGE_MOST_BYTES - 5
    with pytest.raises(HubError, match="more than"):
        list(messages([longest, b"id: 1", b""]))
