"""Test access to a producer's table of streams."""

from dataproxy._core.client.producer cimport ProducerCore
from dataproxy._core.client.streams cimport Stream as CStream
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock

__all__ = ["table"]


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
