"""Test access to what server loops share with the thread of RocketMQ's clients: tables, filters, waits, messages."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.address cimport Address, address_parse
from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.siphash cimport HashKey, hash_key
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.endian cimport load_be16
from dataproxy._core.server.rocketmq.core cimport RemotingCore
from dataproxy._core.server.rocketmq.ends cimport address_bytes
from dataproxy._core.server.rocketmq.filters cimport filter_expression, filter_takes
from dataproxy._core.server.rocketmq.keyed cimport (
    Keyed, keyed_drop, keyed_find, keyed_free, keyed_init, keyed_key, keyed_make, keyed_next,
)
from dataproxy._core.server.rocketmq.lines cimport Line, Wait
from dataproxy._core.server.rocketmq.messages cimport Source, message_seen
from dataproxy._core.server.rocketmq.remoting cimport (
    remoting_asked, remoting_commit, remoting_pulled, remoting_readable, remoting_route, remoting_wanted,
)
from dataproxy._core.server.rocketmq.waits cimport (
    TICK_US, Pulls, pulls_free, pulls_of, wait_find, wait_free, wait_link, wait_new, waits_due,
)
from dataproxy._core.server.state cimport HubShared, ServerLoop
from dataproxy._core.server.store.visits cimport Seen
from dataproxy._core.wire.rocketmq.entry cimport put_entry, stream_of
from dataproxy._core.wire.rocketmq.stored cimport StoredMessage, put_stored, read_stored, stored_size

__all__ = [
    "Filter", "Table", "Waits", "asked", "commit", "entry", "host", "message", "pulled", "readable", "route", "wanted",
]


cdef Slice _slice(bytes text):
    return slice_of(<const uint8_t*><const char*>text, <size_t>len(text))


cdef bytes _bytes(Slice s):
    return s.p[:s.n] if s.n else b""


cdef class Table:
    """A keyed table whose rows have one number."""

    cdef Keyed raw

    def __cinit__(self, bytes secret not None, size_t most):
        """Make an empty table for ``most`` rows; the secret has 16 bytes."""
        cdef HashKey key = hash_key(<const uint8_t*><const char*>secret)
        if keyed_init(&self.raw, &key, 8, most) != ST_OK:
            raise MemoryError

    def __dealloc__(self):
        """Free all rows."""
        keyed_free(&self.raw)

    def make(self, bytes key not None, int64_t value) -> int | None:
        """Set a row and return what it had before, 0 if it is new; None: there is no room."""
        cdef int64_t* row = <int64_t*>keyed_make(&self.raw, _slice(key))
        if row == NULL:
            return None
        before, row[0] = row[0], value
        return before

    def find(self, bytes key not None) -> int | None:
        """Return what a row has."""
        cdef const int64_t* row = <const int64_t*>keyed_find(&self.raw, _slice(key))
        return None if row == NULL else row[0]

    def drop(self, bytes key not None) -> None:
        """Release a row."""
        keyed_drop(&self.raw, _slice(key))

    def rows(self) -> list[tuple[bytes, int]]:
        """Return all rows in their order."""
        cdef const void* row = keyed_next(&self.raw, NULL)
        found = []
        while row != NULL:
            found.append((_bytes(keyed_key(&self.raw, row)), (<const int64_t*>row)[0]))
            row = keyed_next(&self.raw, row)
        return found

    @property
    def count(self) -> int:
        """Return how many rows there are."""
        return self.raw.count

    @property
    def buckets(self) -> int:
        """Return how many buckets there are."""
        return self.raw.size


cdef class Filter:
    """An expression of tags, taken apart."""

    cdef Pulls* raw
    cdef readonly int code

    def __cinit__(self, bytes expression not None):
        """Take it apart; ``code`` is 0, or the one that refuses it."""
        self.raw = <Pulls*>calloc(1, sizeof(Pulls))
        if self.raw == NULL:
            raise MemoryError
        self.code = filter_expression(self.raw, _slice(expression))

    def __dealloc__(self):
        """Free what it has."""
        if self.raw != NULL:
            buf_free(&self.raw.tags)
            buf_free(&self.raw.streams)
            buf_free(&self.raw.odd)
            free(self.raw)

    @property
    def tags(self) -> list[bytes]:
        """Return the tags in their order."""
        cdef size_t at = 0
        cdef const Buf* raw = &self.raw.tags
        found = []
        while at < raw.n:
            found.append(_bytes(slice_of(raw.p + at + 2, load_be16(raw.p + at))))
            at += 2 + load_be16(raw.p + at)
        return found

    @property
    def streams(self) -> list[bytes]:
        """Return the streams that are looked into; none: all of them."""
        cdef const Slice* found = <const Slice*>self.raw.streams.p
        return [_bytes(found[i]) for i in range(self.raw.streams.n // sizeof(Slice))]

    def takes(self, bytes stream not None, bytes properties=b"") -> bool:
        """Tell whether a message of one of these streams is wanted."""
        return filter_takes(self.raw, _slice(stream), _slice(properties))


# ---- What the thread has set in a RemotingCore, as a server loop sees it.

def route(RemotingCore core not None, bytes topic not None, int32_t queue) -> int:
    """Return the queue for a message, -1: the thread decides."""
    return remoting_route(&core.remoting, _slice(topic), queue)


def readable(RemotingCore core not None, bytes topic not None, int32_t queue) -> int:
    """Return the code that refuses a pull, or 0."""
    return remoting_readable(&core.remoting, _slice(topic), queue)


def asked(RemotingCore core not None, bytes group not None) -> bool:
    """Tell whether the thread answers the pulls of a group."""
    return remoting_asked(&core.remoting, _slice(group))


def wanted(RemotingCore core not None, uint64_t connection, bytes group not None, bytes topic not None,
           int64_t version=0):
    """Return (code, kind of filter, tags with their lengths) of a subscription."""
    cdef Buf tags
    cdef int kind = -1
    buf_init(&tags)
    code = remoting_wanted(&core.remoting, connection, _slice(group), _slice(topic), version, &kind, &tags)
    found = _bytes(slice_of(tags.p, tags.n))
    buf_free(&tags)
    return code, kind, found


def pulled(RemotingCore core not None, uint64_t connection, bytes group not None, bytes topic not None,
           int64_t now_us) -> None:
    """Note that a member has pulled."""
    remoting_pulled(&core.remoting, connection, _slice(group), _slice(topic), now_us)


def commit(RemotingCore core not None, uint64_t connection, bytes group not None, bytes topic not None,
           int32_t queue, int64_t offset) -> None:
    """Keep what a pull confirms."""
    remoting_commit(&core.remoting, connection, _slice(group), _slice(topic), queue, offset)


# ---- Messages and addresses.

def host(bytes address not None, int number) -> tuple[bytes, int]:
    """Return the bytes and the port of an address that has this port."""
    cdef Address a
    cdef uint8_t[16] raw
    cdef size_t n = 0
    if address_parse(address, number, &a) != ST_OK:
        raise ValueError(address)
    port = address_bytes(&a, raw, &n)
    return raw[:n], port


def entry(bytes stored not None, int64_t now_ms) -> tuple[bytes, bytes]:
    """Return what is stored of a message behind the store's own header, and the stream that it is stored in."""
    cdef StoredMessage m
    cdef Slice stream
    cdef Buf out
    cdef size_t size = 0, at = 0
    if read_stored(_slice(stored), &m, &size) != ST_OK or size != <size_t>len(stored):
        raise ValueError(stored)
    stream = stream_of(m.properties)
    buf_init(&out)
    status = put_entry(&out, &m, stream, now_ms, &at)
    head = _bytes(slice_of(out.p, out.n))
    buf_free(&out)
    if status != ST_OK:
        raise ValueError(f"status {status}")
    return head[:at] + _bytes(m.body) + head[at:], _bytes(stream)


def message(bytes value not None, bytes stream not None, bytes topic not None, uint32_t log, int32_t queue,
            uint64_t offset) -> bytes:
    """Return an entry of the store as a stored message, which a reader at 127.0.0.1:9876 gets."""
    cdef Source source
    cdef Seen seen
    cdef StoredMessage m
    cdef Buf properties
    memset(&source, 0, sizeof(Source))
    memset(&seen, 0, sizeof(Seen))
    source.topic, source.log, source.queue = _slice(topic), log, queue
    source.host.n, source.host.port = 4, 9876
    source.host.address[0], source.host.address[3] = 127, 1
    seen.offset, seen.value, seen.stream = offset, _slice(value), _slice(stream)
    buf_init(&properties)
    if message_seen(&source, &seen, &properties, &m) != ST_OK:
        raise MemoryError
    raw = bytearray(stored_size(&m))
    end = put_stored(raw, &m) - <uint8_t*>raw
    buf_free(&properties)
    assert end == len(raw)
    return bytes(raw)


# ---- Waits.

cdef class Waits:
    """The desk of a server loop without sockets, and connections that wait there; waits are named by their marks."""

    cdef RemotingCore core
    cdef HubShared* shared
    cdef ServerLoop* loop
    cdef dict lines
    cdef dict waits

    def __cinit__(self, RemotingCore core not None, int64_t now_us):
        """Make an empty desk of the loop 0."""
        self.core, self.lines, self.waits = core, {}, {}
        self.shared = <HubShared*>calloc(1, sizeof(HubShared))
        self.loop = <ServerLoop*>calloc(1, sizeof(ServerLoop))
        if self.shared == NULL or self.loop == NULL:
            raise MemoryError
        self.shared.remoting = <void*>&core.remoting
        self.loop.shared, self.loop.now_us = self.shared, now_us
        if pulls_of(self.loop) == NULL:
            raise MemoryError

    def __dealloc__(self):
        """Free the desk with what waits there, and the connections."""
        pulls_free(self.loop)
        for line in (self.lines or {}).values():
            free(<void*><size_t>line)
        free(self.loop)
        free(self.shared)

    cdef Line* _line(self, int number) except NULL:
        if number not in self.lines:
            self.lines[number] = <size_t>calloc(1, sizeof(Line))
        return <Line*><size_t>self.lines[number]

    def begin(self, int line, uint64_t mark, int64_t due_us, int bucket, bytes request=b"r") -> bool:
        """Let a request wait; False: it may not."""
        cdef Wait* w = wait_new(self.loop, self._line(line), 1, _slice(request), due_us)
        if w == NULL:
            return False
        w.mark = mark
        wait_link(self.loop, w, bucket)
        self.waits[mark] = <size_t>w
        return True

    def end(self, uint64_t mark) -> None:
        """Release a wait."""
        wait_free(self.loop, <Wait*><size_t>self.waits.pop(mark))

    def finds(self, int line, uint64_t mark) -> bool:
        """Tell whether a connection has such a wait."""
        cdef const Wait* w = wait_find(self._line(line), mark)
        return w != NULL and w.mark == mark

    def due(self) -> int:
        """Set when the loop looks again, and return that; 0: never."""
        waits_due(self.loop)
        return self.loop.pull_due_us

    @property
    def soonest(self) -> int:
        """Return when the loop looks again, as the last wait has set it."""
        return self.loop.pull_due_us

    def of(self, int line) -> list[int]:
        """Return the marks of what a connection waits for, the newest first."""
        cdef const Wait* w = self._line(line).first_wait
        found = []
        while w != NULL:
            found.append(w.mark)
            w = w.own.next
        assert len(found) == self._line(line).waits
        return found

    def at(self, int bucket) -> list[int]:
        """Return the marks of what waits for a bucket, the newest first."""
        cdef const Wait* w = (<Pulls*>self.loop.pulls).buckets[bucket]
        found = []
        while w != NULL:
            found.append(w.mark)
            w = w.peers.next
        return found

    def watched(self, int bucket) -> int:
        """Return how many requests the committer believes to wait for a bucket."""
        return atomic_load(&self.core.remoting.news.watched[bucket])

    @property
    def count(self) -> int:
        """Return how many waits there are."""
        return (<Pulls*>self.loop.pulls).waits

    @property
    def tick_us(self) -> int:
        """Return how long a tick is."""
        return TICK_US
