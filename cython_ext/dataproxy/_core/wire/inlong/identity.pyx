"""Identity of stored messages: item attribute ``msgid``, else frame attribute ``sid`` and the index.

Containers of version 3, and those of version 4 with pairs, have attributes for each message.

Locality: owner of the buffers.  Locks: none.
"""

from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy

from dataproxy._core.base.buf cimport (
    buf_free, buf_init, buf_put, buf_put_be16, buf_put_be32, buf_put_decimal, buf_put_slice, buf_put_text, buf_put_u8,
    buf_reserve,
)
from dataproxy._core.base.snappy.compress cimport pack_block
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_EOF, ST_LIMIT, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport store_be16, store_be32
from dataproxy._core.wire.api cimport StoredItem
from dataproxy._core.wire.inlong.attrs cimport attr_is_blank
from dataproxy._core.wire.inlong.const cimport (
    BIN_BODY,
    BIN_BODY_LEN,
    BIN_COUNT,
    EXT_PAIRS,
    LENGTH_SIZE,
    MAX_BODY,
    MAX_COUNT,
)
from dataproxy._core.wire.inlong.container cimport (
    MAX_UNPACKED, Container, container_group, container_open, container_record, put_container_head, put_container_magic,
    put_payload,
)


cdef int read_stored_ids(const uint8_t* p, size_t n, Buf* scratch, Buf* items, StoredIds* out) noexcept nogil:
    """Find the ids in a container."""
    cdef Container c
    cdef StoredItem item
    cdef Slice attrs
    cdef int status = _open(&c, p, n, scratch)
    items.n = 0
    out.count = 0
    out.pack = slice_of(NULL, 0)
    if status != ST_OK:
        return status
    out.pack = _value_of(c.attrs, b"sid=", 4)
    out.payload = c.payload
    if not _has_pairs(&c):
        return ST_OK
    while True:
        status = container_record(&c, &item.body, &attrs)
        if status == ST_EOF:
            return ST_OK if out.count > 0 else ST_PROTOCOL
        if status != ST_OK:
            return status
        item.id = _value_of(attrs, b"msgid=", 6)
        if buf_put(items, &item, sizeof(StoredItem)) != ST_OK:
            return ST_NO_MEMORY
        out.count += 1


cdef int write_without(
    const uint8_t* p, size_t n, const uint8_t* dropped, bint plain, Buf* scratch, Buf* out,
) noexcept nogil:
    """Append a container without some of its messages."""
    cdef Container c
    cdef Buf kept
    cdef uint32_t count = 0
    cdef int status = _open(&c, p, n, scratch)
    if status == ST_OK and not _has_pairs(&c):
        status = ST_PROTOCOL
    if status != ST_OK:
        return status
    buf_init(&kept)
    status = _keep(&c, dropped, plain, &kept, &count)
    if status == ST_OK:
        status = _put_frame(&c, &kept, count, out) if c.version == 4 else _put_run(&c, &kept, count, out)
    buf_free(&kept)
    return status


cdef int _open(Container* c, const uint8_t* p, size_t n, Buf* scratch) noexcept nogil:
    # A container of more than one group, which a request never becomes, tells nothing.
    cdef int status
    scratch.n = 0
    status = container_open(c, p, n, MAX_UNPACKED, scratch)
    if status == ST_OK and c.groups_left != 1:
        return ST_PROTOCOL
    if status == ST_OK:
        status = container_group(c)
    return ST_PROTOCOL if status == ST_EOF else status


cdef bint _has_pairs(const Container* c) noexcept nogil:
    return not c.whole and (c.version == 3 or (c.version == 4 and c.ext & EXT_PAIRS))


cdef Slice _value_of(Slice text, const char* key, size_t key_n) noexcept nogil:
    # `key` ends with "="; entries are trimmed as a whole, as the server reads them.
    cdef const uint8_t* at = text.p
    cdef const uint8_t* end = text.p + text.n
    cdef const uint8_t* stop
    cdef const uint8_t* last
    while at < end:
        stop = <const uint8_t*>memchr(at, 38, <size_t>(end - at))
        if stop == NULL:
            stop = end
        while at < stop and at[0] <= 32:
            at += 1
        if <size_t>(stop - at) >= key_n and memcmp(at, key, key_n) == 0:
            last = stop
            while last > at + key_n and (last - 1)[0] <= 32:
                last -= 1
            return slice_of(at + key_n, <size_t>(last - at) - key_n)
        at = stop + 1
    return slice_of(NULL, 0)


cdef int _keep(Container* c, const uint8_t* dropped, bint plain, Buf* kept, uint32_t* count) noexcept nogil:
    # Pairs that stay.
    cdef Slice pack = _value_of(c.attrs, b"sid=", 4)
    cdef Slice body
    cdef Slice attrs
    cdef size_t index = 0
    cdef bint named
    cdef bint gone
    cdef int status
    while True:
        status = container_record(c, &body, &attrs)
        if status != ST_OK:
            return status if status != ST_EOF else ST_OK
        named = _value_of(attrs, b"msgid=", 6).n > 0
        gone = plain
        if named:
            gone = dropped[index] != 0
        if not gone:
            status = buf_put_be32(kept, <uint32_t>body.n)
            status |= buf_put_slice(kept, body)
            status |= _put_attrs(kept, attrs, pack if not named else slice_of(NULL, 0), index)
            if status != ST_OK:
                return ST_NO_MEMORY
            count[0] += 1
            if kept.n > MAX_BODY:       # each message gets the whole id of the pack
                return ST_LIMIT
        index += 1


cdef int _put_attrs(Buf* kept, Slice attrs, Slice pack, size_t index) noexcept nogil:
    cdef size_t at = kept.n
    cdef int status = buf_put_be32(kept, 0)
    if pack.n == 0 or not attr_is_blank(attrs):
        status |= buf_put_slice(kept, attrs)
    if pack.n > 0:
        status |= buf_put_text(kept, b"&msgid=" if kept.n > at + 4 else b"msgid=")
        status |= buf_put_slice(kept, pack)
        status |= buf_put_u8(kept, 46)
        status |= buf_put_decimal(kept, <int>index)
    if status == ST_OK:
        store_be32(kept.p + at, <uint32_t>(kept.n - at - 4))
    return status


cdef int _put_frame(Container* c, Buf* kept, uint32_t count, Buf* out) noexcept nogil:
    cdef size_t start = out.n
    cdef size_t body_n
    cdef uint8_t* frame
    if count > MAX_COUNT:
        return ST_LIMIT
    if buf_put(out, c.p, 2 + BIN_BODY) != ST_OK:
        return ST_NO_MEMORY
    if (pack_block(kept.p, kept.n, out) if c.packed else buf_put(out, kept.p, kept.n)) != ST_OK:
        return ST_NO_MEMORY
    body_n = out.n - start - 2 - BIN_BODY
    # The attributes, the frame's magic and the container's stand behind the body as they did.
    if buf_put(out, c.attrs.p - 2, <size_t>(c.p + c.end + 2 - c.attrs.p) + 2) != ST_OK:
        return ST_NO_MEMORY
    frame = out.p + start + 2
    store_be16(frame + BIN_COUNT, <uint16_t>count)
    store_be32(frame + BIN_BODY_LEN, <uint32_t>body_n)
    store_be32(frame, <uint32_t>(out.n - start - 4 - LENGTH_SIZE))
    return ST_OK


cdef int _put_run(Container* c, Buf* kept, uint32_t count, Buf* out) noexcept nogil:
    cdef Buf run
    cdef int status = put_container_head(out, 3, c.create_ms, count, 1)
    status |= buf_put_be16(out, <uint16_t>c.attrs.n)
    status |= buf_put_slice(out, c.attrs)
    if status != ST_OK:
        return ST_NO_MEMORY
    buf_init(&run)
    status = buf_reserve(&run, 4 + kept.n)
    if status == ST_OK:
        store_be32(run.p, <uint32_t>kept.n)
        memcpy(run.p + 4, kept.p, kept.n)
        status = put_payload(out, slice_of(run.p, 4 + kept.n), c.packed)
    buf_free(&run)
    return status if status != ST_OK else put_container_magic(out, 3)
