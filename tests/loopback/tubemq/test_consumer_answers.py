"""What a consumer does about every answer of a broker, and about what is no answer: nothing is lost, nothing stalls."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy.errors import ConfirmError
from tests.support.consumers import COMMIT, GET, Opener, balanced, drain, next_pack
from tests.support.reference import tubemq as plain
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

#: Codes that table 5.10 of the protocol's description lists, and others: all of them are refusals of a pack.
WAITS = [301, 400, 401, 405, 410, 413, 414, 452, 500, 503, 510, 0, -1, 2**31 - 1]
ENDS = [411, 412, 415]
N = 6


@pytest.fixture
def filled(tube: TubeServer) -> TubeServer:
    tube.settings.pack_bytes = 1
    for i in range(N):
        tube.put("three", b"%d" % i, partition=i % 3)
    return tube


WANTED = {b"%d" % i for i in range(N)}


@pytest.mark.parametrize("code", [*WAITS, 404])
def test_a_code_in_place_of_a_pack(filled: TubeServer, opened: Opener, code: int) -> None:
    filled.on(GET, ("code", code, "no", {"minLimitTime": 20}), partition=1)
    consumer = opened("three")
    assert set(drain(consumer, N)) == WANTED
    stats = consumer.stats()
    assert (stats.refused, stats.packs.confirmed) == (code != 404, N)
    assert len(consumer.assignment()) == 3


def test_403_waits_for_two_seconds(filled: TubeServer, opened: Opener) -> None:
    filled.on(GET, ("code", 403, "closed"), partition=1)
    consumer = opened("three")
    assert set(drain(consumer, 4)) == {b"%d" % i for i in range(N) if i % 3 != 1}
    assert set(drain(consumer, 2)) == {b"1", b"4"}


@pytest.mark.parametrize("code", ENDS)
def test_a_code_that_ends_a_registration(filled: TubeServer, opened: Opener, code: int) -> None:
    told: list[tuple[str, bool]] = []
    filled.on(GET, ("code", code, "no"), partition=1)
    consumer = opened("three", on_revoked=lambda key, lost: told.append((key, lost)))
    assert set(drain(consumer, N, distinct=True)) == WANTED
    assert told == [("1:three:1", True)]
    assert eventually(lambda: len(consumer.assignment()) == 3)


@pytest.mark.parametrize(
    ("code", "worked"),
    [*((code, False) for code in (*WAITS, *ENDS, 403, 404, 408)), (401, True), (411, True), (500, True)],
)
def test_a_code_in_place_of_a_confirm(filled: TubeServer, opened: Opener, code: int, worked: bool) -> None:
    filled.on(COMMIT, ("code", code, "no"), worked=worked)
    consumer = opened("three")
    pack = next_pack(consumer)
    with pytest.raises(ConfirmError) as caught:
        pack.confirm()
    wanted = "CONFIRM_UNANSWERED" if code in (0, -1) else "CONFIRM_REFUSED"
    assert caught.value.code == wanted
    assert (pack.outcome, caught.value.details["code"]) == ("expired", pack.code)
    seen = set(pack.bodies()) if worked else set()
    while seen != WANTED:
        seen |= set(drain(consumer, 1))
    stats = consumer.stats()
    assert balanced(stats.packs)
    assert stats.packs.expired == 1


# --- connections


@pytest.mark.parametrize("method", [GET, COMMIT])
@pytest.mark.parametrize("worked", [False, True])
def test_the_end_of_a_connection(filled: TubeServer, opened: Opener, method: str, worked: bool) -> None:
    filled.on(method, "close", times=2, worked=worked)
    consumer = opened("three")
    failures = []
    seen: set[bytes] = set()
    while seen != WANTED:
        pack = next_pack(consumer)
        seen |= set(pack.bodies())
        try:
            pack.confirm()
        except ConfirmError as error:
            failures.append(error.code)
    assert set(failures) <= {"CONFIRM_UNANSWERED"}
    assert bool(failures) == (method == COMMIT) or method == GET
    assert balanced(consumer.stats().packs)


def test_answers_that_do_not_come(filled: TubeServer, opened: Opener) -> None:
    """Both are waited for at once: the shortest time that the option allows is long for a test."""
    filled.on(GET, "drop", partition=1)
    filled.on(COMMIT, "drop", partition=0)
    consumer = opened("three", call_timeout=3)
    seen: set[bytes] = set()
    codes = []
    while seen != WANTED:
        pack = next_pack(consumer)
        seen |= set(pack.bodies())
        try:
            pack.confirm()
        except ConfirmError as error:
            codes.append(error.code)
    assert codes == ["CONFIRM_UNANSWERED"]
    assert balanced(consumer.stats().packs)


def test_a_connection_that_ends_again_and_again(filled: TubeServer, opened: Opener) -> None:
    consumer = opened("three")
    seen: set[bytes] = set()
    for _ in range(3):
        pack = next_pack(consumer)
        seen |= set(pack.bodies())
        filled.cut()
        with contextlib.suppress(ConfirmError):
            pack.confirm()
    while seen != WANTED:
        seen |= set(drain(consumer, 1))


# --- bytes that are no answer


def payload(**fields: Any) -> bytes:
    usual = {"success": True, "errCode": 200, "errMsg": b"", "messages": [], "currOffset": 0, "maxOffset": 28,
             "minLimitTime": 0, "escFlowCtrl": False, "currDataDlt": 0, "requireSlow": False}  # fmt: skip
    return plain.answered(17, plain.filled("GetMessageResponseB2C", {**usual, **fields}).SerializeToString())


def lying(serial: int, head: bytes) -> bytes:
    return struct.pack(">II", plain.TOKEN, serial) + head


NOISE = random.Random(7).randbytes(5000)


def swapped(serial: int) -> bytes:
    """Return an answer whose slices stand the wrong way round."""
    data = payload()
    parts = [data[i : i + 20] for i in range(0, len(data), 20)][::-1]
    return lying(serial, struct.pack(">I", len(parts))) + b"".join(struct.pack(">I", len(one)) + one for one in parts)


def too_few(serial: int) -> bytes:
    """Return an answer with a slice more than it says."""
    parts = [payload(), NOISE[:50]]
    return lying(serial, struct.pack(">I", 1)) + b"".join(struct.pack(">I", len(one)) + one for one in parts)


REPLIES: dict[str, Callable[[int], bytes]] = {
    "noise": lambda serial: NOISE,
    "web": lambda serial: b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "no slices": lambda serial: lying(serial, struct.pack(">I", 0)),
    "too many slices": lambda serial: lying(serial, struct.pack(">I", 2**32 - 1)),
    "a huge slice": lambda serial: lying(serial, struct.pack(">II", 1, 2**32 - 1)),
    "an empty slice": lambda serial: lying(serial, struct.pack(">II", 1, 0)),
    "noise in a frame": lambda serial: plain.cut(serial, NOISE),
    "another method": lambda serial: plain.cut(serial, plain.answered(18, b"")),
    "no message": lambda serial: plain.cut(serial, plain.answered(17, b"")),
    "broken protobuf": lambda serial: plain.cut(serial, plain.answered(17, b"\xff" * 40)),
    "cut protobuf": lambda serial: plain.cut(serial, plain.answered(17, payload()[:-3])),
    "an exception": lambda serial: plain.cut(serial, plain.failed(1, "java.lang.Error\xff", "\x00\n" * 500)),
    "a fatal exception": lambda serial: plain.cut(serial, plain.failed(2, "", "")),
    "slices out of order": swapped,
    "too few slices": too_few,
    "slices of one byte": lambda serial: plain.cut(serial, payload(), 1),
    "an answer to another call first": lambda serial: (
        plain.cut((serial + 77) & 0xFFFFFFFF, NOISE) + plain.cut(serial, payload())
    ),
}


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("method", [GET, COMMIT])
def test_bytes_in_place_of_an_answer(filled: TubeServer, opened: Opener, method: str, name: str) -> None:
    filled.on(method, ("reply", REPLIES[name]), partition=1)
    consumer = opened("three")
    seen: set[bytes] = set()
    codes = set()
    while seen != WANTED:
        pack = next_pack(consumer)
        seen |= set(pack.bodies())  # a confirm whose answer went down with its connection may have worked
        try:
            pack.confirm()
        except ConfirmError as error:
            codes.add(error.code)
    assert codes <= {"CONFIRM_UNANSWERED"}
    assert balanced(consumer.stats().packs)


# --- messages that are not what they seem


def mangled(change: Callable[[Any], Any]) -> tuple[str, Callable[[Any], Any]]:
    return ("mangle", change)


def test_a_message_with_a_wrong_checksum_is_skipped(tube: TubeServer, opened: Opener) -> None:
    for i in range(3):
        tube.put("one", b"%d" % i)

    def spoil(answer: Any) -> None:
        answer.messages[1].checkSum ^= 1

    tube.on(GET, mangled(spoil))
    consumer = opened()
    assert drain(consumer, 2) == [b"0", b"2"]
    stats = consumer.stats()
    assert (stats.broken, stats.filtered, stats.messages.fetched) == (1, 0, 2)
    assert tube.confirmed("g", "one", 0) == 3 * 28


def test_a_pack_of_nothing_but_broken_messages_is_passed(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(2):
        tube.put("one", b"%d" % i)

    def spoil(answer: Any) -> None:
        answer.messages[0].payLoadData = b"x"

    tube.on(GET, mangled(spoil))
    consumer = opened()
    assert drain(consumer, 1) == [b"1"]
    assert consumer.stats().broken == 1


def many(answer: Any) -> None:
    del answer.messages[:]


def attribute_that_lies(answer: Any) -> None:
    one = answer.messages[0]
    one.flag, one.payLoadData = 1, b"\x7f\xff\xff\xffab"
    one.checkSum = plain.checksum_of(one.payLoadData)


def negative_attribute(answer: Any) -> None:
    one = answer.messages[0]
    one.flag, one.payLoadData = 1, b"\xff\xff\xff\xffab"
    one.checkSum = plain.checksum_of(one.payLoadData)


def no_room_for_an_attribute(answer: Any) -> None:
    one = answer.messages[0]
    one.flag, one.payLoadData = 1, b"\x00"
    one.checkSum = plain.checksum_of(one.payLoadData)


def numbers_that_lie(answer: Any) -> None:
    answer.currOffset, answer.maxOffset, answer.currDataDlt = -(2**63), 2**63 - 1, -(2**63)
    answer.minLimitTime = -(2**31)
    answer.messages[0].messageId = -1


@pytest.mark.parametrize(
    "change", [attribute_that_lies, negative_attribute, no_room_for_an_attribute, numbers_that_lie]
)
def test_messages_that_lie(filled: TubeServer, opened: Opener, change: Callable[[Any], Any]) -> None:
    filled.on(GET, mangled(change), partition=0)
    consumer = opened("three")
    pack = next_pack(consumer)
    while pack.partition != "1:three:0":
        pack.confirm()
        pack = next_pack(consumer)
    assert len(pack) == 1
    assert isinstance(pack[0].body, bytes)
    assert isinstance(pack[0].attributes, dict)
    assert len(pack.to_arrow()) == 1
    assert consumer.lag()["1:three:0"] is not None
    pack.confirm()
    assert eventually(lambda: consumer.stats().packs.confirmed >= 1)
    assert balanced(consumer.stats().packs)


def test_a_pack_without_messages_moves_on(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    tube.on(GET, mangled(many), times=3)
    consumer = opened()
    assert drain(consumer, 1) == [b"a"]
    assert consumer.stats().empty >= 3
