"""Test access to the hash and to the ids in stored containers."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.siphash cimport Hash128, HashKey, hash_bytes, hash_key
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_OK, status_name
from dataproxy._core.wire.api cimport StoredIds, StoredItem
from dataproxy._core.wire.inlong.identity cimport read_stored_ids, write_without

__all__ = ["siphash", "stored_ids", "without"]


def siphash(bytes key not None, bytes data not None) -> bytes:
    """Return the 16 bytes of the hash under a key of 16 bytes."""
    cdef HashKey made = hash_key(<const uint8_t*><const char*>key)
    cdef Hash128 out = hash_bytes(&made, <const uint8_t*><const char*>data, <size_t>len(data))
    return out.first.to_bytes(8, "little") + out.second.to_bytes(8, "little")


cdef bytes _text(Slice s):
    return s.p[:s.n] if s.n else b""


def stored_ids(bytes container not None):
    """Return (pack, payload, [(id, body)]) of a container, or the name of what is wrong."""
    cdef StoredIds found
    cdef Buf scratch
    cdef Buf items
    cdef const StoredItem* item
    cdef size_t i
    cdef int status
    buf_init(&scratch)
    buf_init(&items)
    try:
        status = read_stored_ids(<const uint8_t*><const char*>container, <size_t>len(container), &scratch, &items,
                                 &found)
        if status != ST_OK:
            return status_name(status).decode()
        out = []
        for i in range(found.count):
            item = <const StoredItem*>items.p + i
            out.append((_text(item.id), _text(item.body)))
        return _text(found.pack), _text(found.payload) if not out else b"", out
    finally:
        buf_free(&scratch)
        buf_free(&items)


def without(bytes container not None, bytes dropped not None, bint plain):
    """Return the container without the messages that are marked, or the name of what is wrong."""
    cdef Buf scratch
    cdef Buf out
    cdef int status
    buf_init(&scratch)
    buf_init(&out)
    try:
        status = write_without(<const uint8_t*><const char*>container, <size_t>len(container),
                               <const uint8_t*><const char*>dropped, plain, &scratch, &out)
        return out.p[:out.n] if status == ST_OK else status_name(status).decode()
    finally:
        buf_free(&scratch)
        buf_free(&out)
