"""Ranges of partitions are exact: by themselves, one behind the other, again, and after whatever happens in between."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.config import ConsumerConfig
from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.places import Place
from dataproxy.consumer.ranges.reader import Damaged, Lost, Piece, RangeReader
from dataproxy.consumer.ranges.registering import Client
from dataproxy.errors import ClosedError, GroupRefusedError, RemoteProtocolError, TransportError
from tests.loopback.consumer.ranges.conftest import COUNT, INDEX, Filled
from tests.support.tubeserver import TubeServer

GET, CONFIRM, REGISTER = "GetMessageRequestC2B", "CommitOffsetRequestC2B", "RegisterRequestC2B"
END = COUNT * INDEX


def raised(lost: Lost | Damaged) -> None:
    raise AssertionError(lost)


def bodies(pieces: Iterator[Piece]) -> list[bytes]:
    return [body for piece in pieces for body in piece.pack.bodies()[: piece.rows]]


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def reader(calls: Calls, config: ConsumerConfig, waits: list[float]) -> RangeReader:
    return RangeReader(calls, config, raised, waits.append)


@pytest.fixture(params=["1:one:0", "1:three:1"])
def place(request: pytest.FixtureRequest, places: dict[str, Place]) -> Place:
    return places[request.param]


def test_every_range_is_exact_and_the_same_again(
    reader: RangeReader, places: dict[str, Place], filled: Filled, server: TubeServer
) -> None:
    source = random.Random(2)
    for place in places.values():
        for _ in range(12):
            begin, end = sorted(INDEX * source.randrange(COUNT + 1) for _ in range(2))
            expected = filled.between(place, begin, end)
            assert bodies(reader.read(place, begin, end)) == expected
            assert bodies(reader.read(place, begin, end)) == expected
        cuts = sorted({0, END, *(INDEX * source.randrange(COUNT) for _ in range(6))})
        parts = [bodies(reader.read(place, *pair)) for pair in itertools.pairwise(cuts)]
        assert [body for part in parts for body in part] == filled.between(place, 0, END)
        assert server.owner("g-read-0", place.topic, place.partition) is None


def test_what_comes_later_is_in_no_range(reader: RangeReader, place: Place, filled: Filled, server: TubeServer) -> None:
    """Also if it comes while the range is read, and into the same pack."""
    server.settings.pack_bytes = 1 << 20
    reader._sleep = lambda _: filled.add(place.topic, 20)
    server.on(GET, ("code", 452, "slowly"))  # so that it sleeps between its registration and its first pack
    assert bodies(reader.read(place, 0, END)) == filled.between(place, 0, END)
    assert server.end(place.topic) == END + 20 * INDEX
    filled.add(place.topic, 20)
    assert bodies(reader.read(place, 0, END)) == filled.between(place, 0, END)
    assert bodies(reader.read(place, END, server.end(place.topic))) == filled.between(place, END, 10 * END)


def test_offsets_of_messages_are_known_where_a_partition_has_its_store_for_itself(
    reader: RangeReader, place: Place, filled: Filled
) -> None:
    pieces = list(reader.read(place, 2 * INDEX, 100 * INDEX))
    if not place.alone:
        assert {piece.first for piece in pieces} == {None}
        return
    found = [piece.first + i * INDEX for piece in pieces for i in range(piece.rows) if piece.first is not None]
    assert found == list(range(2 * INDEX, 100 * INDEX, INDEX))


def spoilt(server: TubeServer, times: int) -> None:
    """Give the first message of packs a wrong checksum."""

    def spoil(answer: Any) -> None:
        answer.messages[0].checkSum += 1

    server.on(GET, ("mangle", spoil), times=times)


def test_a_message_that_is_damaged_on_its_way_is_read_again(
    reader: RangeReader, places: dict[str, Place], filled: Filled, server: TubeServer, waits: list[float]
) -> None:
    spoilt(server, 2)
    pieces = list(reader.read(places["1:one:0"], 0, END))
    assert all(piece.first is not None for piece in pieces)
    assert bodies(iter(pieces)) == filled.between(places["1:one:0"], 0, END)
    assert len(waits) == 2


def test_a_message_that_stays_damaged_is_told_and_makes_the_offsets_of_its_pack_unknown(
    calls: Calls, config: ConsumerConfig, places: dict[str, Place], filled: Filled, server: TubeServer
) -> None:
    spoilt(server, 3)
    told: list[Lost | Damaged] = []
    reader = RangeReader(calls, config, told.append, lambda _: None)
    pieces = list(reader.read(places["1:one:0"], 0, END))
    assert told == [Damaged(places["1:one:0"], 0, 1)]
    assert [piece.first is None for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert bodies(iter(pieces)) == filled.between(places["1:one:0"], INDEX, END)


@pytest.mark.parametrize("after", [0, 2])
def test_a_broker_that_has_nothing_for_a_moment_ends_no_range(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer, after: int
) -> None:
    seen = itertools.count()
    server.on(GET, ("code", 404, "nothing new"), times=3, when=lambda _: next(seen) >= after)
    assert bodies(reader.read(place, 0, END)) == filled.between(place, 0, END)


@pytest.mark.parametrize("offsets", [{}, {"currOffset": 0}, {"currOffset": -1, "maxOffset": -1}])
def test_a_registration_without_offsets_is_no_empty_store(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer, offsets: dict[str, int]
) -> None:
    def mangle(answer: Any) -> None:
        answer.ClearField("currOffset")
        answer.ClearField("maxOffset")
        for name, value in offsets.items():
            setattr(answer, name, value)

    server.on(REGISTER, ("mangle", mangle), times=None)
    with pytest.raises(RemoteProtocolError, match="names no offsets"):
        bodies(reader.read(place, 0, END))


def test_a_broker_that_has_nothing_before_its_end_is_an_error(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer
) -> None:
    server.on(GET, ("code", 404, "nothing new"), times=None)
    with pytest.raises(TransportError, match=f"gives no message at 0, and says that they go to {END}"):
        bodies(reader.read(place, 0, END))


def test_filters(calls: Calls, config: ConsumerConfig, place: Place, filled: Filled) -> None:
    wanted = config.replace(topics={"one": ["t1"], "three": ["t0", "t2"]})
    kinds = {1} if place.topic == "one" else {0, 2}
    pieces = list(RangeReader(calls, wanted, raised).read(place, 5 * INDEX, 90 * INDEX))
    expected = [
        body for n, (at, where, body) in enumerate(filled.topics[place.topic])
        if n % 3 in kinds and where == place.partition and 5 * INDEX <= at < 90 * INDEX
    ]  # fmt: skip
    assert bodies(iter(pieces)) == expected
    assert {piece.first for piece in pieces} == {None}


def test_long_stretches_of_others(reader: RangeReader, places: dict[str, Place], server: TubeServer) -> None:
    """A broker looks through so many entries for one request; what it did not come to is not left out."""
    server.settings.scan_entries = 7
    expected = []
    for n in range(100):
        rare = n % 40 == 39
        server.put("three", b"%d" % n, 2 if rare else 0)
        expected += [b"%d" % n] if rare else []
    for end in (100, 80, 79):
        assert bodies(reader.read(places["1:three:2"], 0, end * INDEX)) == expected[: 2 if end >= 80 else 1]
    assert bodies(reader.read(places["1:three:1"], 0, 100 * INDEX)) == []


# --- others who read


def test_readers_of_a_partition_do_not_meet(
    reader: RangeReader, calls: Calls, config: ConsumerConfig, place: Place, filled: Filled, server: TubeServer
) -> None:
    running = [reader.read(place, 0, END) for _ in range(3)]
    first = [next(one) for one in running]
    owners = [server.owner(f"g-read-{n}", place.topic, place.partition) for n in range(4)]
    assert len(set(owners[:3])) == 3
    assert owners[3] is None
    found = [bodies(itertools.chain([head], one)) for head, one in zip(first, running, strict=True)]
    assert found == [filled.between(place, 0, END)] * 3
    assert {server.owner(f"g-read-{n}", place.topic, place.partition) for n in range(3)} == {None}
    assert server.confirmed("g", place.topic, place.partition) is None


def test_a_reader_that_is_left_early_gives_its_partition_back(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer
) -> None:
    running = reader.read(place, 0, END)
    next(running)
    running.close()
    assert server.owner("g-read-0", place.topic, place.partition) is None


def test_no_name_is_left(
    reader: RangeReader, calls: Calls, config: ConsumerConfig, places: dict[str, Place], server: TubeServer
) -> None:
    server.on(REGISTER, ("code", 410, "[Duplicated Register]"), times=None)
    with pytest.raises(GroupRefusedError, match="64 readers have partition 1:one:0") as caught:
        list(reader.read(places["1:one:0"], 0, END))
    assert caught.value.code == "NAMES_TAKEN"


# --- trouble


TROUBLE: dict[str, Callable[[TubeServer], Any]] = {
    "cut": lambda server: server.cut(),
    "forgotten": lambda server: server.on(GET, ("code", 411, "who?")),
    "another": lambda server: server.on(GET, ("code", 412, "another")),
    "busy": lambda server: server.on(GET, ("code", 503, "busy"), times=3),
    "confirm": lambda server: server.on(CONFIRM, ("code", 401, "no")),
    "unseen confirm": lambda server: server.on(CONFIRM, "close", worked=True),
    "exception": lambda server: server.on(GET, ("exception", "java.lang.Oops", "text")),
    "register": lambda server: (server.on(GET, ("code", 411, "who?")), server.on(REGISTER, "close")),
    "moved": lambda server: server.on(GET, ("code", 301, "again"), times=20),
}


@pytest.mark.parametrize("trouble", TROUBLE)
@pytest.mark.parametrize("when", [0, 1, 4])
def test_trouble_loses_and_doubles_nothing(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer, trouble: str, when: int
) -> None:
    begin, end = 3 * INDEX, 140 * INDEX
    running = reader.read(place, begin, end)
    head = list(itertools.islice(running, when))
    TROUBLE[trouble](server)
    assert bodies(itertools.chain(head, running)) == filled.between(place, begin, end)


def test_trouble_that_ends_with_the_range(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer
) -> None:
    """The message behind the end is asked for, and the broker has forgotten the reader, or the connection breaks."""
    server.settings.pack_bytes = 1 << 20
    for n, action in enumerate([("code", 411, "who?"), "close", ("code", 500, "no")]):
        server.on(REGISTER, action, when=lambda request: request.currOffset == 70 * INDEX)
        expected = filled.between(place, 0, 70 * INDEX)
        assert bodies(reader.read(place, 0, 70 * INDEX)) == expected, n


def test_a_broker_that_is_gone_and_comes_back(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer, waits: list[float]
) -> None:
    running = reader.read(place, 0, END)
    head = next(running)
    server.stop_broker()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            server.start_broker()

    reader._sleep = sleep
    running = reader.read(place, 0, END)
    assert bodies(running) == filled.between(place, 0, END)
    assert head.rows
    assert waits == [0.1, 0.2]


def test_a_broker_that_stays_away(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer, waits: list[float]
) -> None:
    server.stop_broker()
    with pytest.raises(TransportError, match="does not answer RegisterRequestC2B: no connection"):
        list(reader.read(place, 0, END))
    assert len(waits) == 5


def test_limits_of_speed_are_waited_for(
    reader: RangeReader, place: Place, filled: Filled, server: TubeServer, waits: list[float]
) -> None:
    server.on(GET, ("code", 452, "slowly", {"minLimitTime": 250}), times=30)
    assert bodies(reader.read(place, 0, END)) == filled.between(place, 0, END)
    assert waits == [0.25] * 30


@pytest.mark.parametrize(("method", "code"), [(REGISTER, 403), (REGISTER, 415), (GET, 403)])
def test_a_refusal(
    reader: RangeReader, places: dict[str, Place], filled: Filled, server: TubeServer, method: str, code: int
) -> None:
    server.on(method, ("code", code, "not here"))
    with pytest.raises(TransportError, match=f"refuses partition 1:one:0 to 'g-read-0' with code {code}") as caught:
        list(reader.read(places["1:one:0"], 0, END))
    assert (caught.value.code, caught.value.retriable) == ("BROKER_REFUSED", False)
    assert ("user and password" in str(caught.value)) == (code == 415)


def test_answers_that_are_none(reader: RangeReader, places: dict[str, Place], server: TubeServer) -> None:
    def empty(answer: Any) -> None:
        answer.currOffset += 0
        del answer.messages[:]

    for n in range(3):
        server.put("one", b"%d" % n)
    server.on(GET, ("mangle", empty), times=None)
    with pytest.raises(TransportError, match="1:one:0 cannot be read: a broker gives packs without messages"):
        list(reader.read(places["1:one:0"], 0, 3 * INDEX))


def test_credentials(calls: Calls, config: ConsumerConfig, server: TubeServer, places: dict[str, Place]) -> None:
    server.settings.require_auth = True
    server.put("one", b"a")
    with pytest.raises(TransportError, match="user and password"):
        Client(calls, config).take(places["1:one:0"], 0)
    mine = config.replace(user="ann", password="secret")
    with Calls(mine) as signed:
        assert bodies(RangeReader(signed, mine, raised).read(places["1:one:0"], 0, INDEX)) == [b"a"]


# --- what is gone


def test_messages_that_are_gone_are_told(
    calls: Calls, config: ConsumerConfig, place: Place, filled: Filled, server: TubeServer
) -> None:
    server.trim(place.topic, 40 * INDEX)
    told: list[Lost | Damaged] = []
    reader = RangeReader(calls, config, told.append)
    assert bodies(reader.read(place, 10 * INDEX, 60 * INDEX)) == filled.between(place, 40 * INDEX, 60 * INDEX)
    assert told == [Lost(place, 10 * INDEX, 60 * INDEX, 40 * INDEX, END)]
    assert bodies(reader.read(place, 10 * INDEX, 20 * INDEX)) == []
    assert len(told) == 2
    assert bodies(reader.read(place, None, 60 * INDEX)) == filled.between(place, 40 * INDEX, 60 * INDEX)
    assert len(told) == 2


def test_messages_that_go_while_a_range_is_read(
    calls: Calls, config: ConsumerConfig, place: Place, filled: Filled, server: TubeServer
) -> None:
    told: list[Lost | Damaged] = []
    running = RangeReader(calls, config, told.append, lambda _: None).read(place, 0, END)
    found = next(running).pack.bodies()
    server.trim(place.topic, 100 * INDEX)
    found += bodies(running)
    (lost,) = told
    assert (lost.end, lost.first, lost.last) == (END, 100 * INDEX, END)
    gone = filled.between(place, lost.begin, 100 * INDEX)
    assert found == [body for body in filled.between(place, 0, END) if body not in gone]


def test_a_store_that_was_emptied(calls: Calls, config: ConsumerConfig, place: Place, filled: Filled) -> None:
    told: list[Lost | Damaged] = []
    reader = RangeReader(calls, config, told.append)
    assert bodies(reader.read(place, END + INDEX, END + 9 * INDEX)) == []
    assert bodies(reader.read(place, END - INDEX, END + INDEX)) == filled.between(place, END - INDEX, END)
    assert [(lost.first, lost.last) for lost in told] == [(END, END), (END - INDEX, END)]


def test_a_broken_answer_is_asked_for_again(
    reader: RangeReader, places: dict[str, Place], server: TubeServer, waits: list[float]
) -> None:
    server.put("one", b"a")
    server.on(GET, ("reply", b"\x00\x01"), worked=True)
    assert bodies(reader.read(places["1:one:0"], 0, INDEX)) == [b"a"]
    assert len(waits) == 1


def test_a_reader_that_ends_after_its_calls_waits_for_no_answer(
    config: ConsumerConfig, places: dict[str, Place], filled: Filled
) -> None:
    place = places["1:one:0"]
    filled.add("one", 1)
    with Calls(config) as calls:
        pieces = RangeReader(calls, config, raised).read(place, 0, END)
        next(pieces)
    with pytest.raises(ClosedError):
        calls.wait(Client(calls, config).post_unregister(place, "g"))
    pieces.close()
