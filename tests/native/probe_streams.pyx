"""Test access to a producer's table of streams, and to what it keeps of messages that were not delivered."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from dataproxy._core.producer.results.undelivered cimport UndeliveredPack
from dataproxy._core.producer.producer cimport ProducerCore
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock

__all__ = ["least_body", "spoil_undelivered", "table"]


def table(ProducerCore core):
    """Return (stream id, attributes) -> references for each stream that the producer keeps."""
    cdef CStream* s
    cdef size_t i
    found = []
    g = core.engine
    pthread_mutex_lock(&g.batcher.lock)
    for i in range(g.batcher.streams.mask + 1):
        s = g.batcher.streams.slots[i]
        while s != NULL:
            found.append((s.stream.p[:s.stream.n], s.attrs.p[:s.attrs.n] if s.attrs.n else b"", atomic_load(&s.users)))
            s = s.next
    n = g.batcher.streams.n
    pthread_mutex_unlock(&g.batcher.lock)
    assert n == len(found)
    return {(bytes(name).decode(), bytes(attrs).decode()): users for name, attrs, users in found}


def least_body(ProducerCore core):
    """Return how large a body is that fits every stream of the producer."""
    g = core.engine
    pthread_mutex_lock(&g.batcher.lock)
    n = g.batcher.least_body
    pthread_mutex_unlock(&g.batcher.lock)
    return n


def spoil_undelivered(ProducerCore core):
    """Make the oldest compressed pack that was not delivered one that cannot be unpacked; return its messages."""
    cdef UndeliveredPack* x
    cdef int64_t n = 0
    g = core.engine
    pthread_mutex_lock(&g.undelivered.lock)
    x = g.undelivered.first
    while x != NULL and not x.compressed:
        x = x.next
    if x != NULL:
        memset(x.buf + x.at, 0xFF, x.end - x.at)
        n = x.count
    pthread_mutex_unlock(&g.undelivered.lock)
    return n
