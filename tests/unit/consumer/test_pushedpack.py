"""Packs of messages in RocketMQ's protocol: bodies, properties, columns, and two objects for one pack."""

from __future__ import annotations

import contextlib
import struct
import weakref
import zlib

import pyarrow as pa
import pytest

from dataproxy._core.consumer.pack import Pack
from dataproxy._core.consumer.pushedpack import EXPIRED, ask_end, give_out, is_of, make_pack, number_of, settle
from dataproxy._core.remoting.messages import read_messages
from dataproxy.consumer.pushed.unpacking import Unpacking
from dataproxy.errors import RemoteProtocolError
from dataproxy.rocketmq.group.backlog import Chunk

ZLIB, LZ4 = 1, 1 | 1 << 8


def stored(offset: int, body: bytes, properties: bytes = b"", sys_flag: int = 0, wrong: int = 0) -> bytes:
    rest = struct.pack(
        ">IIiiqqiq4siq4siiqi", 0xDAA320A7, (zlib.crc32(body) & 0x7FFFFFFF) ^ wrong, 0, 0, offset, offset, sys_flag, 0,
        bytes(4), 0, 0, bytes(4), 0, 0, 0, len(body),
    )  # fmt: skip
    rest += body + b"\x01t" + struct.pack(">h", len(properties)) + properties
    return struct.pack(">i", len(rest) + 4) + rest


def pack_of(*messages: bytes) -> Pack:
    found, _ = read_messages(b"".join(messages), "b")
    unpacking = Unpacking(Chunk(found, 0, 0))
    while not unpacking.go_on():
        pass
    return make_pack(found, "T", "b:T:0", 7, 100, unpacking.bodies)


def test_bodies_and_properties_are_those_of_the_messages() -> None:
    large = bytes(range(256)) * 20
    pack = pack_of(
        stored(5, b"one", b"TAGS\x01a\x02k\x01v,w=x\x02"),
        stored(6, zlib.compress(large), b"k\x01\xff\x02e\x01", ZLIB),
        stored(9, b"three", b"no pair\x02=\x01,"),
    )
    assert (pack.topic, pack.partition, pack.offset, pack.max_offset, number_of(pack)) == ("T", "b:T:0", 5, 100, 7)
    assert pack.bodies() == [b"one", large, b"three"] and [one.id for one in pack] == [5, 6, 9]
    assert pack[0].attributes == {"TAGS": "a", "k": "v,w=x"} and pack[2].attributes == {"=": ","}
    batch = pa.record_batch(pack.to_arrow())
    assert batch.column("body").to_pylist() == pack.bodies()
    assert batch.column("attributes").to_pylist() == [[("TAGS", "a"), ("k", "v,w=x")], [("e", "")], [("=", ",")]]
    assert batch.column("id").to_pylist() == [5, 6, 9]
    assert pack.nbytes > len(large)


class Thing:
    """Something that an application has while it looks at a body."""


@pytest.mark.parametrize("what", ["a body", "bodies"])
def test_an_error_of_a_body_keeps_nothing_of_those_who_have_looked(what: str) -> None:
    pack = give_out(pack_of(stored(0, b"no zlib", sys_flag=ZLIB)), None)

    def look() -> weakref.ref[Thing]:
        thing = Thing()
        with contextlib.suppress(RemoteProtocolError):
            print(thing, pack[0].body if what == "a body" else pack.bodies())
        return weakref.ref(thing)

    assert look()() is None


@pytest.mark.parametrize(("body", "flag", "said"), [(b"x", LZ4, "with LZ4"), (b"no zlib", ZLIB, "is no zlib")])
def test_a_body_that_cannot_be_unpacked_is_an_error_where_it_is_looked_at(body: bytes, flag: int, said: str) -> None:
    pack = give_out(pack_of(stored(0, b"plain"), stored(1, body, sys_flag=flag)), None)
    assert pack[0].body == b"plain" and pack[1].id == 1
    for look in (lambda: pack[1].body, pack.bodies, pack.to_arrow):
        with pytest.raises(RemoteProtocolError, match=said):
            look()


def test_messages_with_a_wrong_checksum_are_left_out_and_counted() -> None:
    found, broken = read_messages(stored(0, b"good") + stored(1, b"bad", wrong=1), "b")
    assert [one.body for one in found] == [b"good"] and broken == 1


def test_both_objects_of_a_pack_have_one_outcome() -> None:
    own, consumer = pack_of(stored(0, b"x")), object()
    given = give_out(own, consumer)
    assert is_of(given, consumer) and not is_of(own, consumer) and not is_of("x", consumer)
    assert ask_end(given, True) and not ask_end(given, False) and given.done
    settle(own, 9, 1)
    assert given.outcome == "held"
    settle(own, EXPIRED, -1)
    settle(own, 1, 0)
    del own
    assert (given.outcome, given.code, given.bodies()) == ("expired", -1, [b"x"])
