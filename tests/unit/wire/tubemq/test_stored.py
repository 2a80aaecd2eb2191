"""Messages of TubeMQ's producers in the hub's store: every payload comes back to the byte."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native import probe_tubemq as wire

NOW_MS = 1_700_000_000_000


def request(payload: bytes, flag: int = 0, item: bytes = b"", checksum: int = -1) -> bytes:
    fields = {
        "clientId": b"c",
        "topicName": b"demo",
        "partitionId": 3,
        "data": payload,
        "flag": flag,
        "checkSum": checksum,
        "sentAddr": 0x7F000001,
        "msgType": item,
        "msgTime": b"",
    }
    return wire.write("SendMessageRequestP2B", fields)


def attributed(text: bytes, body: bytes) -> bytes:
    return len(text).to_bytes(4) + text + body


@given(
    st.one_of(
        st.tuples(
            st.sampled_from([0, 2, -1, 1]), st.one_of(st.binary(max_size=300), st.binary(min_size=500, max_size=600))
        ),
        st.tuples(st.sampled_from([1, 3]), st.builds(attributed, st.binary(max_size=60), st.binary(max_size=200))),
    ),
    st.binary(max_size=40),
    st.integers(-1, 2**31 - 1),
)
def test_a_payload_and_its_checksum_come_back_to_the_byte(sent: tuple[int, bytes], item: bytes, checksum: int) -> None:
    flag, payload = sent
    found, head, body, kept = wire.read_kept(wire.kept(request(payload, flag, item, checksum), NOW_MS))
    assert (found, head + body) == (flag, payload)
    assert kept == (checksum if len(payload) >= 512 else -1)


@pytest.mark.parametrize("text", [b"tubemq=0", b"tubemq=0&crc=", b"tubemq=0&crc=1x", b"tubemq=0&src=12"])
def test_a_container_without_a_checksum_has_none(text: bytes) -> None:
    """As those that were stored before checksums were kept."""
    container = wire.kept(request(b"x" * 10), NOW_MS)
    at = container.index(b"tubemq=0")
    size = int.from_bytes(container[at - 2 : at]) - len(b"tubemq=0") + len(text)
    changed = container[: at - 2] + size.to_bytes(2) + text + container[at + len(b"tubemq=0") :]
    assert wire.read_kept(changed) == (0, b"", b"x" * 10, -1)


def test_a_reader_of_the_hub_gets_the_body_and_finds_the_attribute() -> None:
    container = wire.kept(request(attributed(b"$msgType$=a,k=%&", b"the body"), 1, b"a"), NOW_MS)
    assert b"tubemq=1&attr=$msgType$%3Da,k%3D%25%26&groupId=demo&streamId=a&dt=1700000000000" in container
    assert b"\x00\x00\x00\x08the body\x0f\x02" in container
    assert wire.read_kept(container)[1:3] == (attributed(b"$msgType$=a,k=%&", b"")[:20], b"the body")


def test_an_attribute_that_no_attribute_text_has_room_for_stays_with_the_body() -> None:
    payload = attributed(b"k=" + b"=" * 11_000, b"body")
    container = wire.kept(request(payload, 1), NOW_MS)
    assert wire.read_kept(container)[:3] == (1, b"", payload)
    assert payload in container


@pytest.mark.parametrize("cut", [1, 20, 40, 60])
def test_a_container_that_is_cut_off_is_none(cut: int) -> None:
    container = wire.kept(request(b"x" * 10), NOW_MS)
    with pytest.raises(wire.ProbeError):
        wire.read_kept(container[:-cut])


def test_containers_of_other_requests_are_none() -> None:
    container = wire.kept(request(b"x" * 10), NOW_MS)
    for version in (0, 1, 3, 4):
        with pytest.raises(wire.ProbeError):
            wire.read_kept(bytes([0x0F, version]) + container[2:])


def test_another_protocols_message_gets_its_stream_and_its_time() -> None:
    assert wire.kept_head(b"s_click", b"202607010930") == attributed(b"$msgType$=s_click,$msgTime$=202607010930", b"")
    assert wire.kept_head(b"a,b", b"202607010930") == attributed(b"$msgTime$=202607010930", b"")
    assert wire.kept_head(b"a=b", b"202607010930") == attributed(b"$msgTime$=202607010930", b"")


def test_ids_are_those_of_places() -> None:
    assert wire.kept_id(0, 7) == 7
    assert wire.kept_id(2, 7) == (2 << 48) + 7
    assert 0 <= wire.kept_id(0xFFFFFFFF, (1 << 64) - 1) < 1 << 63


@pytest.mark.parametrize("size", [0, 1, 100, 8_000, 8_170, 8_192, 20_000, 70_000])
@pytest.mark.parametrize("n", [0, 1, 5, 90])
def test_a_pack_in_one_pass_is_the_pack_in_two(n: int, size: int) -> None:
    parts = [(i << 40, i % 3, b"h" * (i % 5), bytes([i % 251]) * (size + i)) for i in range(n)]
    fields = {"offset": 28, "max_offset": 2800, "backlog": 12345}
    found = wire.pack(77, fields, parts)
    messages = [
        {
            "messageId": one,
            "checkSum": zlib.crc32(head + body) & 0x7FFFFFFF,
            "payLoadData": head + body,
            "flag": flag,
        }
        for one, flag, head, body in parts
    ]
    answer = {
        "success": True,
        "errCode": 200,
        "errMsg": b"OK!",
        "messages": messages,
        "currOffset": 28,
        "minLimitTime": 0,
        "escFlowCtrl": False,
        "currDataDlt": 12345,
        "requireSlow": False,
        "maxOffset": 2800,
    }
    assert found == wire.frame(77, wire.answer(17, wire.write("GetMessageResponseB2C", answer)))


def test_a_pack_larger_than_every_readers_limit_is_refused() -> None:
    with pytest.raises(wire.ProbeError):
        wire.pack(1, {"offset": 0, "max_offset": 28, "backlog": 0}, [(0, 0, b"", bytes(3584 * 8192))])
