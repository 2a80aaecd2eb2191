"""Packs of messages that a hub has pushed, in the protocol of RocketMQ; whoever makes one keeps account of it.

A pack is made twice: as the object of whoever keeps account, and as that of the application, which knows its consumer.
Both share the messages and the outcome.

Locality: GIL, any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.consumer.pack cimport Pack
from dataproxy._core.consumer.tubepack cimport PO_CONFIRMED, PO_EXPIRED, PO_HELD, TubeItem, TubePack, tubepack_hold
from dataproxy._core.plat.atomic cimport atomic_load, atomic_store, atomic_swap
from dataproxy._core.remoting.messages cimport ReceivedMessage
from dataproxy._core.wire.rocketmq.const cimport COMPRESSION_NONE, NAME_VALUE, PAIR
from dataproxy._core.wire.rocketmq.stored cimport compression_of

__all__ = [
    "CONFIRMED", "EXPIRED", "ROLLED_BACK", "ask_end", "give_out", "is_of", "is_packed", "make_pack", "number_of",
    "settle",
]

CONFIRMED, ROLLED_BACK, EXPIRED = 1, 2, 3       # of TubePack.outcome


cdef int _take(Pack pack, TubePack* p, list messages, list bodies) except -1:
    """Put messages into a pack, with bodies that were unpacked.  Raises MemoryError."""
    cdef ReceivedMessage one
    cdef TubeItem* item
    cdef object body
    for one in messages:
        item = &p.items[p.n]
        item.id, item.attribute, item.body = one.at.queue_offset, one.at.properties, one.at.body
        p.bytes += <int64_t>one.at.body.n
        body = None if bodies is None else bodies[p.n]
        if isinstance(body, bytes):
            p.memory += len(<bytes>body)
            item.body = slice_of(<const char*><bytes>body, len(<bytes>body))
        elif body is not None:
            if pack.faults is None:
                pack.faults = {}
            pack.faults[p.n] = body
        p.body_bytes += <int64_t>item.body.n
        p.n += 1
    return 0


def is_packed(list messages not None):
    """Tell whether the body of any message has to be unpacked."""
    cdef ReceivedMessage one
    for one in messages:
        if compression_of(one.at.sys_flag) != COMPRESSION_NONE:
            return True
    return False


def make_pack(
    list messages not None, str topic not None, str partition not None, int64_t number, int64_t max_offset, list bodies,
):
    """Return the pack of messages of one frame, of which there is at least one, for whoever keeps account.

    ``number``: by which it finds it again.  ``bodies``: for each message its unpacked body, None if it was not packed,
    or the error that is raised where it is looked at; None: none was packed.  Raises MemoryError.
    """
    cdef ReceivedMessage first = messages[0]
    cdef TubePack* p = <TubePack*>calloc(1, sizeof(TubePack))
    cdef Pack pack
    if p == NULL:
        raise MemoryError("no memory for a pack")
    p.items = <TubeItem*>calloc(<size_t>len(messages), sizeof(TubeItem))
    if p.items == NULL:
        free(p)
        raise MemoryError("no memory for a pack")
    p.users, p.hold, p.max_offset, p.came = 1, number, max_offset, <int32_t>len(messages)
    p.offset, p.pair_mark, p.sign_mark = first.at.queue_offset, PAIR, NAME_VALUE
    pack = Pack.make(p, None, topic, partition)
    p.memory = <int64_t>(sizeof(TubePack) + <size_t>len(messages) * sizeof(TubeItem)) + len(first.data)
    _take(pack, p, messages, bodies)
    pack.data = (messages, bodies)
    return pack


def give_out(Pack pack not None, object consumer):
    """Return the application's object of a pack."""
    cdef Pack given
    tubepack_hold(pack.pack)
    given = Pack.make(pack.pack, consumer, pack.topic, pack.partition)
    given.data, given.faults = pack.data, pack.faults
    return given


def number_of(Pack pack not None):
    """Return the number that a pack was made with."""
    return pack.pack.hold


def is_of(object pack, object consumer):
    """Tell whether something is a pack that was given out for a consumer."""
    return isinstance(pack, Pack) and (<Pack>pack).consumer is consumer


def ask_end(Pack pack not None, bint consumed):
    """Note that a pack's confirm was asked for, or that it was given back; False: this was done before."""
    if atomic_swap(&pack.pack.confirm_asked, 1):
        return False
    if consumed:
        pack.done = True
    return True


def settle(Pack pack not None, int outcome, int code):
    """Set what became of a pack, once; ``code`` says why it expired.  One thread at a time."""
    if atomic_load(&pack.pack.outcome) == PO_HELD and PO_CONFIRMED <= outcome <= PO_EXPIRED:
        pack.pack.code = code
        atomic_store(&pack.pack.outcome, outcome)
