"""Write and read the queue header of a stored entry.

Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from dataproxy._core.base.crc cimport crc32c
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_STORE
from dataproxy._core.plat.endian cimport load_be16, load_be32, load_be64, store_be16, store_be32, store_be64


cdef size_t header_size(const QueueHeader* header) noexcept nogil:
    """Return the bytes that ``header_write`` will write.

    Locality: any thread.
    """
    return HEADER_FIXED + 2 + _text_size(header.source) + _text_size(header.node)


cdef size_t header_write(const QueueHeader* header, uint8_t* out) noexcept nogil:
    """Write the header to ``out`` (``header_size`` bytes) and return its size; texts are cut at 255 bytes.

    Locality: any thread.
    """
    cdef size_t at = HEADER_FIXED
    memset(out, 0, HEADER_FIXED)
    out[0] = HEADER_VERSION
    out[1] = HEADER_ENCODING
    out[2] = HEADER_QUEUE_VERSION
    store_be64(out + HEADER_AT_RECEIVE, <unsigned long long>header.receive_ms)
    store_be64(out + HEADER_AT_TIME, <unsigned long long>header.data_time_ms)
    store_be32(out + HEADER_AT_RECORDS, header.records)
    header_place(out, header.stream, header.stored_ms)
    at += _put_text(out + at, header.source)
    at += _put_text(out + at, header.node)
    store_be16(out + HEADER_AT_SIZE, <uint16_t>at)
    return at


cdef void header_place(uint8_t* p, uint32_t stream, int64_t stored_ms) noexcept nogil:
    """Fill in the number of the stream and the store's time.  Locality: appending thread."""
    store_be32(p + HEADER_AT_STREAM, stream)
    store_be64(p + HEADER_AT_STORED, <unsigned long long>stored_ms)


cdef void header_seal(uint8_t* p, size_t n, const void* key, size_t key_n) noexcept nogil:
    """Fill in the checksums of an entry that is complete.  Locality: appending thread."""
    cdef size_t head = load_be16(p + HEADER_AT_SIZE)
    store_be32(p + HEADER_AT_CRC, crc32c(0, p + head, n - head))
    store_be32(p + HEADER_AT_OWN_CRC, _own_crc(p, head, key, key_n))


cdef int header_check(const uint8_t* p, size_t n, const void* key, size_t key_n, bint whole) noexcept nogil:
    """Compare the checksums of a stored entry.  Locality: any thread."""
    cdef size_t head
    if n < HEADER_FIXED + 2 or p[0] != HEADER_VERSION:
        return ST_STORE
    head = load_be16(p + HEADER_AT_SIZE)
    if head < HEADER_FIXED + 2 or head > n or load_be32(p + HEADER_AT_OWN_CRC) != _own_crc(p, head, key, key_n):
        return ST_STORE
    if whole and load_be32(p + HEADER_AT_CRC) != crc32c(0, p + head, n - head):
        return ST_STORE
    return ST_OK


cdef uint32_t _own_crc(const uint8_t* p, size_t head, const void* key, size_t key_n) noexcept nogil:
    """Return the checksum of key and header.  Locality: any thread."""
    cdef uint32_t crc = crc32c(crc32c(0, key, key_n), p, HEADER_AT_OWN_CRC)
    return crc32c(crc, p + HEADER_FIXED, head - HEADER_FIXED)


cdef size_t header_end(Slice value) noexcept nogil:
    """Return the bytes of a value's header, 0 when it is not a known one.

    Locality: any thread.
    """
    cdef size_t end
    if value.n < HEADER_FIXED + 2 or value.p[0] != HEADER_VERSION:
        return 0
    end = load_be16(value.p + HEADER_AT_SIZE)
    return end if HEADER_FIXED + 2 <= end <= value.n else 0


cdef int header_read(const uint8_t* p, size_t n, QueueHeader* header, size_t* size) noexcept nogil:
    """Read the header at ``p``: ST_OK with its size, or ST_STORE when the bytes are not a known header.

    Locality: any thread.
    """
    cdef size_t at = HEADER_FIXED
    cdef size_t end
    if n < HEADER_FIXED + 2 or p[0] != HEADER_VERSION:
        return ST_STORE
    end = load_be16(p + HEADER_AT_SIZE)
    if end < HEADER_FIXED + 2 or end > n:
        return ST_STORE
    header.receive_ms = <int64_t>load_be64(p + HEADER_AT_RECEIVE)
    header.data_time_ms = <int64_t>load_be64(p + HEADER_AT_TIME)
    header.records = load_be32(p + HEADER_AT_RECORDS)
    header.stream = load_be32(p + HEADER_AT_STREAM)
    header.stored_ms = <int64_t>load_be64(p + HEADER_AT_STORED)
    if at + 1 + p[at] >= end:
        return ST_STORE
    header.source = slice_of(p + at + 1, p[at])
    at += 1 + <size_t>p[at]
    if at + 1 + p[at] > end:
        return ST_STORE
    header.node = slice_of(p + at + 1, p[at])
    size[0] = end
    return ST_OK


cdef size_t _text_size(Slice text) noexcept nogil:
    """Return the bytes of a text after the cut.  Locality: any thread."""
    return text.n if text.n <= 255 else 255


cdef size_t _put_text(uint8_t* out, Slice text) noexcept nogil:
    """Write a length byte and the text.  Locality: any thread."""
    cdef size_t n = _text_size(text)
    out[0] = <uint8_t>n
    if n:
        memcpy(out + 1, text.p, n)
    return n + 1
