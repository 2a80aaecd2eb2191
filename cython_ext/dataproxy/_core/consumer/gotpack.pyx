"""Packs from answers that came as bytes: for readers that make each call themselves.  Such a pack keeps the bytes.

Locality: GIL, any thread; released while a pack is made.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.consumer.pack cimport Pack
from dataproxy._core.consumer.tubepack cimport TubeItem, TubePack, tubepack_let_go, tubepack_read
from dataproxy._core.wire.tubemq.get cimport Got

__all__ = ["count_broken", "find_first", "read_pack"]


cdef int _read(Slice data, list filters, Got* got, TubePack** out) except -1:
    """Read an answer as `tubepack_read` does.  Raises MemoryError."""
    cdef Slice* items = <Slice*>malloc((len(filters) + 1) * sizeof(Slice))
    cdef bytes one
    cdef int i, status, n = len(filters)
    if items == NULL:
        raise MemoryError("no memory for filters")
    for i in range(n):
        one = filters[i]
        items[i] = slice_of(<const char*>one, len(one))
    with nogil:
        status = tubepack_read(data, NULL, items, n, got, out)
        free(items)
    if status == ST_NO_MEMORY:
        raise MemoryError("no memory for a pack")
    return status


def read_pack(bytes answer not None, str topic not None, str partition not None, list filters not None):
    """Return (code, text, offset, end of the store, wait in ms, messages that came, pack or None) of an answer to GET.

    ``filters`` are bytes, of which the caller keeps the list unchanged.  Numbers that the broker did not give are -1.
    None: the bytes are no such answer.
    """
    cdef Got got
    cdef TubePack* made = NULL
    cdef Pack pack = None
    if _read(slice_of(<const char*>answer, len(answer)), filters, &got, &made) != ST_OK:
        return None
    if got.n == 0:
        tubepack_let_go(made)
    else:
        pack = Pack.make(made, None, topic, partition)
        pack.data = answer
    text = (<const char*>got.text.p)[:got.text.n].decode("utf-8", "replace") if got.text.n else ""
    return (got.code, text, max(got.offset, -1), max(got.max_offset, -1), max(got.wait_ms, -1), got.n, pack)


def count_broken(Pack pack not None):
    """Return how many messages of the answer are not in ``pack`` because their checksum is wrong."""
    return pack.pack.broken


def find_first(Pack pack not None, Pack other not None):
    """Return where ``pack`` has the first message of ``other``, -1: nowhere.

    Messages are the same if id, attributes and body are: ids alone are unique only while one broker runs.
    """
    cdef TubeItem* items = pack.pack.items
    cdef TubeItem* wanted = other.pack.items
    cdef int64_t i, n = pack.pack.n, found = -1
    if other.pack.n == 0:
        return -1
    with nogil:
        for i in range(n):
            if (items[i].id == wanted.id and slice_equals(items[i].attribute, wanted.attribute)
                    and slice_equals(items[i].body, wanted.body)):
                found = i
                break
    return found
