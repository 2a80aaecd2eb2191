"""Test access to visits of a store, and to the positions of consumer groups that it keeps.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, status_name
from dataproxy._core.server.entries cimport ENTRY_OFFSET, Entry, entry_free_chain, entry_offset
from dataproxy._core.server.store.core cimport StoreCore
from dataproxy._core.server.store.offsets cimport StoredOffset, offsets_read
from dataproxy._core.server.store.visits cimport Seen, Visit, Visitor, visit_free, visit_init

__all__ = ["append_offsets", "stored_offsets", "visit"]


ctypedef struct Look:
    Visit v
    uint64_t wanted
    Buf sizes               # what was seen, as uint64: offset, size of the value, size of the name
    Buf names


cdef int _place(void* context) noexcept nogil:
    cdef Look* look = <Look*>context
    look.v.offset = max(look.wanted, look.v.first)
    return ST_OK


cdef int _take(void* context) noexcept nogil:
    cdef Look* look = <Look*>context
    cdef const Seen* seen = <const Seen*>look.v.seen.p
    cdef uint64_t row[3]
    cdef size_t i
    for i in range(look.v.seen.n // sizeof(Seen)):
        row[0], row[1], row[2] = seen[i].offset, seen[i].value.n, seen[i].stream.n
        if buf_put(&look.sizes, row, sizeof(row)) != ST_OK or buf_put(
                &look.names, seen[i].stream.p, seen[i].stream.n) != ST_OK:
            return ST_NO_MEMORY
    return ST_OK


def visit(StoreCore store not None, str topic not None, uint32_t partition, uint64_t offset, *, streams=(),
          size_t entries=1 << 20, size_t enough=1 << 40, size_t most=1 << 40, size_t around=0):
    """Visit a log twice with one visitor; return (first, next, stop, [(offset, stream)]) of the second time."""
    cdef bytes name = topic.encode()
    cdef list kept = [one.encode() for one in streams]
    cdef Slice wanted[64]
    cdef Look look
    cdef const uint64_t* rows
    cdef size_t i, at = 0
    cdef int status = ST_OK
    cdef Visitor visitor = store.visitor()
    memset(&look, 0, sizeof(Look))
    visit_init(&look.v)
    buf_init(&look.sizes)
    buf_init(&look.names)
    for i in range(<size_t>len(kept)):
        wanted[i] = slice_of(<const char*><bytes>kept[i], <size_t>len(kept[i]))
    look.wanted = offset
    look.v.topic = slice_of(<const char*>name, <size_t>len(name))
    look.v.partition = partition
    look.v.streams, look.v.n_streams = wanted, <size_t>len(kept)
    look.v.most_entries, look.v.enough_bytes, look.v.most_bytes = entries, enough, most
    look.v.around = around
    look.v.place, look.v.take, look.v.context = _place, _take, <void*>&look
    try:
        for _ in range(2):
            look.sizes.n = look.names.n = 0
            with nogil:
                status = visitor(store._source, &look.v)
        if status != ST_OK:
            raise ValueError(((<bytes>status_name(status)).decode(), look.v.damaged))
        rows = <const uint64_t*>look.sizes.p
        found = []
        for i in range(look.sizes.n // 24):
            stream = look.names.p[at:at + rows[3 * i + 2]] if rows[3 * i + 2] else b""
            found.append((rows[3 * i], stream.decode()))
            at += rows[3 * i + 2]
        return look.v.first, look.v.next, look.v.stop, found
    finally:
        visit_free(&look.v)
        buf_free(&look.sizes)
        buf_free(&look.names)


def append_offsets(StoreCore store not None, rows):
    """Append (topic, partition, group, position, version) as one commit, beside no committer: the status names."""
    cdef Entry parts
    cdef Entry* chain = NULL
    cdef Entry* one
    cdef bytes topic, group
    for named, partition, of_group, position, version in reversed(list(rows)):
        topic, group = named.encode(), of_group.encode()
        memset(&parts, 0, sizeof(Entry))
        parts.kind = ENTRY_OFFSET
        parts.group = slice_of(<const char*>topic, <size_t>len(topic))
        parts.stream = slice_of(<const char*>group, <size_t>len(group))
        parts.partition, parts.offset, parts.version = partition, <uint64_t><int64_t>position, version
        one = entry_offset(&parts)
        if one == NULL:
            raise MemoryError
        one.next = chain
        chain = one
    with nogil:
        store._committer.ops.append(store._committer.store, chain)
    found = []
    one = chain
    while one != NULL:
        found.append((<bytes>status_name(one.status)).decode())
        one = one.next
    entry_free_chain(chain)
    return found


cdef bint _collect(void* context, const StoredOffset* one) noexcept nogil:
    cdef Slice topic = one.topic
    cdef Slice group = one.group
    with gil:
        (<list>context).append((topic.p[:topic.n].decode(), one.partition, group.p[:group.n].decode(),
                                one.position, one.version))
    return True


def stored_offsets(StoreCore store not None):
    """Return the rows of a durable store, in an order of its own."""
    cdef list found = []
    cdef int error
    with nogil:
        error = offsets_read(&store._shared.env, _collect, <void*>found)
    if error:
        raise ValueError(error)
    return found
