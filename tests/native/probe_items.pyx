"""Test access to the items of packs: the walk over them, and appends without a check."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.pack.pack cimport Pack, pack_strip
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport status_name
from dataproxy._core.producer.accumulate.batcher cimport batcher_append
from dataproxy._core.producer.accumulate.state cimport EX_NOTHING, NO_KEY, NO_TIME, Extras
from dataproxy._core.producer.results.packitems cimport ItemWalk, item_next, pack_keep_ids, pack_own_ids
from dataproxy._core.producer.accumulate.rowpacks cimport rowpacks_append
from dataproxy._core.producer.ingest.stream cimport Stream
from dataproxy._core.producer.ingest.sources cimport BodyList, body_rows
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LENGTH, ITEM_LINES

__all__ = ["FORMS", "append", "append_rows", "items", "kept_ids"]

FORMS = {"length": ITEM_LENGTH, "attrs": ITEM_ATTRS, "lines": ITEM_LINES}


cdef uint8_t* _copy(bytes data) except NULL:
    """Return the bytes in memory of exactly their size, so that a sanitizer sees the first read behind them."""
    cdef uint8_t* p = <uint8_t*>malloc(max(1, len(data)))
    if p == NULL:
        raise MemoryError
    memcpy(p, <const char*>data, len(data))
    return p


def items(bytes data, int form, uint32_t most):
    """Return (body, attributes) of at most so many items, as far as whole ones are there."""
    cdef uint8_t* p = _copy(data)
    cdef ItemWalk walk
    cdef Slice body, attrs
    found = []
    walk.p = p
    walk.n = len(data)
    walk.items = form
    try:
        while len(found) < most and item_next(&walk, &body, &attrs):
            found.append((body.p[:body.n] if body.n else b"", attrs.p[:attrs.n] if attrs.n else b""))
    finally:
        free(p)
    return found


def kept_ids(bytes data, uint32_t count):
    """Return the ids that a settled pack of ``count`` messages keeps when its items are ``data``."""
    cdef Pack p
    memset(&p, 0, sizeof(Pack))
    p.buf = _copy(data)
    p.cap = max(1, len(data))
    p.body_n = len(data)
    p.items = ITEM_ATTRS
    p.count = count
    p.own_ids = True
    pack_keep_ids(&p)
    try:
        return pack_own_ids(&p)
    finally:
        pack_strip(&p)


cdef void _plain(Extras* x) noexcept:
    x.when_ms = NO_TIME
    x.attrs = slice_of(NULL, 0)
    x.own_id = slice_of(NULL, 0)
    x.key_bucket = NO_KEY
    x.exempt = EX_NOTHING
    x.owner = NULL


def append(Stream stream not None, bytes body):
    """Append a body as one that was checked before its memory changed; return the status."""
    cdef const uint8_t* p = <const uint8_t*><const char*>body
    cdef Extras x
    cdef int status
    _plain(&x)
    status = batcher_append(&stream.core.engine.batcher, stream.stream, p, <size_t>len(body), &x, NULL, NULL)
    return status_name(status).decode()


def append_rows(Stream stream not None, bodies):
    """Append bodies as rows that were checked before their memory changed; return the status and how many are in."""
    cdef BodyList source = body_rows(bodies, stream.core.hold_from)
    cdef Extras x
    cdef int64_t at = 0
    cdef int status
    _plain(&x)
    status = rowpacks_append(
        &stream.core.engine.batcher, stream.stream, &source.rows, &at, source.rows.n, &x, NULL, False)
    return status_name(status).decode(), at
