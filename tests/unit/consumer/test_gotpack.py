"""Packs made of the bytes of an answer, and messages found again in another pack."""

from __future__ import annotations

import pytest

from dataproxy._core.consumer.gotpack import find_first, read_pack
from tests.support.gotpacks import answer, message, pack


def read(data: bytes, *filters: bytes) -> tuple[object, ...]:
    found = read_pack(data, "t", "1:t:0", list(filters))
    assert found is not None
    return found


def test_a_pack() -> None:
    code, text, offset, end, wait_ms, came, made = read(answer(message(b"a", "k=v"), message(b"b"), maxOffset=999))
    assert (code, text, offset, end, wait_ms, came) == (200, "text", 280, 999, -1, 2)
    assert (made.bodies(), made[0].attributes, made.topic, made.partition) == ([b"a", b"b"], {"k": "v"}, "t", "1:t:0")  # type: ignore[attr-defined]


def test_an_answer_without_messages() -> None:
    assert read(answer(code=404, offset=-1, minLimitTime=7)) == (404, "text", -1, -1, 7, 0, None)
    assert read(answer(offset=None))[2:] == (-1, -1, -1, 0, None)


def test_messages_that_are_left_out_are_counted() -> None:
    data = answer(message(b"a", "$msgType$=x"), message(b"b", "$msgType$=y"), message(b"c", spoiled=True))
    assert read(data)[5] == 3
    assert read(data)[-1].bodies() == [b"a", b"b"]  # type: ignore[attr-defined]
    assert read(data, b"y", b"z")[-1].bodies() == [b"b"]  # type: ignore[attr-defined]
    assert len(read(data, b"z")[-1]) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x08\x01", answer(message(b"a"))[:-1]])
def test_bytes_that_are_no_answer(data: bytes) -> None:
    assert read_pack(data, "t", "1:t:0", []) is None


def test_a_message_is_found_by_all_that_it_is() -> None:
    wanted = pack(message(b"body", "k=v", 7), message(b"other"))
    same = message(b"body", "k=v", 7)
    others = [
        message(b"body", "k=v", 8),
        message(b"bodx", "k=v", 7),
        message(b"body", "k=w", 7),
        message(b"body", "", 7),
    ]
    assert find_first(pack(*others), wanted) == -1
    assert find_first(pack(*others, same, same), wanted) == 4
    assert find_first(pack(same), wanted) == 0
    empty = read_pack(answer(message(b"a", spoiled=True)), "t", "1:t:0", [])
    assert empty is not None
    assert empty[-1] is not None
    assert find_first(pack(same), empty[-1]) == -1
    assert find_first(empty[-1], wanted) == -1
