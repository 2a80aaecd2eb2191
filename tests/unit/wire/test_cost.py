"""What a parser costs grows with the bytes it is given and with nothing else, in both roles, whatever the bytes are.

Cost is processor time of this thread, the least of several tries; it is compared with itself at another size, and with
that of ordinary requests of the same size.  The margins are wide: what this guards against is off by thousands.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dataproxy._core.wire.inlong.message import records
from dataproxy.errors import RemoteProtocolError
from tests.campaigns.hostile import beat, binary, text
from tests.native.probe_window import stored_ids, without
from tests.native.probe_wire import Server, Wire, pack
from tests.support.reference.snappy import pack_repeats

SMALL, LARGE = 1 << 13, 1 << 16
TIMES_LINEAR = 6  # bytes of eight times the size may cost so many times as much, each
TIMES_ORDINARY = 250

NAMES = b"groupId=g&streamId=s"
SHAPES: dict[str, Callable[[int], bytes]] = {
    "no keys": lambda n: b"=&" * (n // 2) + b"=",
    "nothing between": lambda n: b"&" * n,
    "equal signs": lambda n: b"=" * n,
    "one key again and again": lambda n: b"&".join([b"key=value"] * (n // 10)),
    "keys of few bytes": lambda n: b"&".join(b"%x=" % i for i in range(n // 5)),
    "long keys of one beginning": lambda n: b"&".join(b"k" * 300 + b"%d=" % i for i in range(n // 306)),
    "names and keys": lambda n: NAMES + b"".join(b"&%x=" % i for i in range((n - 20) // 6)),
    "one long value": lambda n: NAMES + b"&k=" + b"v" * (n - 23),
    "blanks": lambda n: b" " * (n - 20) + NAMES,
    "not UTF-8": lambda n: NAMES + b"&k=" + b"\xf0\x9f" * ((n - 23) // 2),
    "numbers": lambda n: NAMES + b"&dt=" + b"9" * (n - 24),
    "brackets": lambda n: b"errMsg=" + b"(" * (n - 7),
    "error texts": lambda n: b"&".join([b"errMsg=(" + b"x" * 8] * (n // 17)),
    "numbers of requests": lambda n: b"&".join([b"mid=12345678"] * (n // 13)),
}


def sized(data: bytes) -> bytes:
    """Return bytes behind their length."""
    return len(data).to_bytes(4, "big") + data


def pairs(attrs: bytes) -> bytes:
    """Return a message with attributes of its own."""
    return sized(b"x") + sized(attrs)


FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "text 3": lambda attrs: text(3, b"x", attrs),
    "text 5": lambda attrs: text(5, sized(b"x"), attrs),
    "binary": lambda attrs: binary(sized(b"x"), attrs[:32_000]),
    "own attributes, text 6": lambda attrs: text(6, pairs(attrs), NAMES),
    "own attributes, binary": lambda attrs: binary(pairs(attrs), NAMES, ext=5),
    "own attributes, packed": lambda attrs: binary(pack(pairs(attrs) * 3), NAMES, ext=5, kind=0x27),
    "messages": lambda attrs: binary(sized(b"x") * (len(attrs) // 5), NAMES, count=1),
    "messages with attributes": lambda attrs: binary((pairs(b"a=") * (len(attrs) // 11)), NAMES, ext=5),
    "heartbeat": lambda attrs: beat(attrs[:32_000]),
}


def cost(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    best, tries = 1e9, 0
    while tries < 5:
        begin = time.thread_time()
        call()
        best = min(best, time.thread_time() - begin)
        tries += 1
    return best


def within(small: float, large: float, made: Callable[[], object]) -> bool:
    """Tell whether the cost of a byte stays what it was, beside the objects that the probe makes of the result.

    What many objects cost hangs on the allocator: a sanitizer's has steps, and gets slower with what a run has made
    before.  So making such objects is measured, too, and allowed in addition.
    """
    return large < TIMES_LINEAR * (small * LARGE / SMALL + cost(made))


def served(server: Server, frame: bytes, times: int = 20) -> float:
    """Return the seconds that judging a frame takes."""
    return cost(lambda: server.serve_many(frame, 1, times)) / times


def ordinary() -> float:
    """Return the seconds a byte of a request as producers send them."""
    frame = binary(sized(b"x" * 100) * 500, NAMES, count=500)
    return served(Server(), frame) / len(frame)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("compat", [False, True])
def test_a_server_judges_every_frame_in_linear_time(kind, shape, compat):
    server = Server(compat=compat)
    frames = [FRAMES[kind](SHAPES[shape](size)) for size in (SMALL, LARGE)]
    small, large = (served(server, frame) / len(frame) for frame in frames)
    assert large < TIMES_LINEAR * small + 1e-9
    assert large < TIMES_ORDINARY * max(ordinary(), 1e-10)


def test_eleven_megabytes_of_own_attributes_are_refused_before_they_are_split():
    body = pack_repeats([(sized(b"x"), 1), ((11_000_000).to_bytes(4, "big"), 1), (b"=&", 5_500_000)])
    bomb = binary(body, ext=5, kind=0x27)
    server = Server()
    assert server.serve(bomb, 1)["code"] == 123
    unpacking = binary(pack_repeats([((11_000_004).to_bytes(4, "big"), 1), (b"=&", 5_500_002)]), kind=0x27)
    assert server.serve(unpacking, 1)["action"] == "store"
    assert served(server, bomb, 1) < 20 * served(server, unpacking, 1), "the cost is that of unpacking"


@pytest.mark.parametrize("size", [65_535, 65_536])
def test_own_attributes_are_as_long_as_those_of_a_frame(size):
    own = b"k=" + b"v" * (size - 2)
    answer = Server().serve(binary(pairs(own), NAMES, ext=5), 1)
    assert answer["code"] == (0 if size <= 65_535 else 123)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_client_reads_every_answer_in_linear_time(shape):
    wire = Wire()

    def answer(size: int) -> bytes:
        return text(3, b"2", SHAPES[shape](size))

    def binary_answer(size: int) -> bytes:
        attrs = SHAPES[shape](size)[:65_535]
        rest = b"\x07" + bytes(4) + (len(attrs) & 0xFFFF).to_bytes(2, "big") + attrs + b"\xee\x01"
        return sized(rest)

    for make in (answer, binary_answer):
        costs = []
        for size in (SMALL, LARGE):
            frame = make(size)
            wire.parse_reply(frame)
            costs.append(cost(lambda frame=frame: [wire.parse_reply(frame) for _ in range(20)]) / len(frame) * size)
        assert within(*costs, lambda frame=frame: [bytearray(frame) for _ in range(20)])
        assert costs[1] / 20 / LARGE < TIMES_ORDINARY * max(ordinary(), 1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_refusal_is_written_in_linear_time(shape):
    server = Server()
    costs = []
    for size in (SMALL, LARGE):
        success = text(3, b"2", b"dpIp=127.0.0.1&" + SHAPES[shape](size))
        seconds = cost(lambda one=success: [server.refuse(one, 114, b"no room") for _ in range(20)])
        costs.append(seconds / len(success) * size)
    assert within(*costs, lambda: [bytearray(success) for _ in range(20)])


CONTAINERS: dict[str, Callable[[int], bytes]] = {
    "messages": lambda n: entry(binary(sized(b"x") * (n // 5), NAMES)),
    "packed messages": lambda n: entry(binary(pack(sized(b"x") * (n // 5)), NAMES, kind=0x27)),
    "own attributes": lambda n: entry(binary(b"".join(pairs(b"a=%d" % i) for i in range(n // 14)), NAMES, ext=5)),
    "own ids": lambda n: entry(binary(b"".join(pairs(b"msgid=%d" % i) for i in range(n // 20)), NAMES, ext=5)),
    "many attributes": lambda n: entry(
        binary(sized(b"x"), (NAMES + b"".join(b"&%x=1" % i for i in range(n // 7)))[:32_000].rpartition(b"&")[0])
    ),
}


def entry(frame: bytes) -> bytes:
    """Return what a server stores of a frame."""
    answer = Server(compress_entries=False).serve(frame, 1)
    assert answer["action"] == "store", answer
    return bytes(answer["entry"])


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers_are_read_in_linear_time(kind):
    costs = []
    for size in (SMALL, LARGE):
        container = CONTAINERS[kind](size)
        seconds = cost(lambda one=container: (list(records(one)), stored_ids(one)))
        costs.append(seconds / max(len(container), size // 4) * size)
    found, ids = list(records(container)), stored_ids(container)
    assert within(*costs, lambda: ([(bytes(bytearray(body)), dict(attrs)) for body, attrs in found], list(ids)))


def test_broken_containers_cost_no_more_than_whole_ones():
    container = entry(binary(sized(b"x" * 20) * 2000, NAMES))
    whole = cost(lambda: list(records(container)))

    def broken() -> None:
        for at in range(2, len(container), len(container) // 7):
            try:
                list(records(container[:at] + b"\xff" * 4 + container[at + 4 :]))
            except RemoteProtocolError:
                continue

    assert cost(broken) < 7 * 20 * whole


def test_a_pack_with_a_long_id_is_not_written_again_at_its_length_for_each_message():
    """Messages that stay get the whole id of their pack: the result is bounded, whatever came in."""
    body = pairs(b"msgid=known") + pairs(b"a=") * 4000
    container = entry(binary(body, NAMES + b"&sid=" + b"i" * 30_000, ext=5))
    assert isinstance(without(container, b"\x01" + bytes(4000), False), str), "it is kept as it came"
    assert isinstance(without(entry(binary(body, NAMES + b"&sid=short", ext=5)), b"\x01" + bytes(4000), False), bytes)
