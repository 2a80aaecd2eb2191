"""Snappy blocks through libsnappy: every size is checked before memory is allocated.

Locks: none.
"""

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK, ST_PROTOCOL, ST_SYSTEM
from dataproxy._core.plat.snappy cimport (
    SNAPPY_OK,
    snappy_compress,
    snappy_max_compressed_length,
    snappy_uncompress,
    snappy_uncompressed_length,
    snappy_validate_compressed_buffer,
)


cdef size_t pack_bound(size_t n) noexcept nogil:
    """Return the most bytes that packing ``n`` bytes can give.  Locality: any thread."""
    return snappy_max_compressed_length(n)


cdef int pack_block(const uint8_t* p, size_t n, Buf* out) noexcept nogil:
    """Append ``p[0:n]`` as one block.  Locality: owner of ``out``."""
    cdef size_t size = snappy_max_compressed_length(n)
    if buf_reserve(out, size) != ST_OK:
        return ST_NO_MEMORY
    if snappy_compress(<const char*>p, n, <char*>(out.p + out.n), &size) != SNAPPY_OK:
        return ST_SYSTEM
    out.n += size
    return ST_OK


cdef int unpacked_size(const uint8_t* p, size_t n, size_t limit, size_t* size) noexcept nogil:
    """Read the content's size from the head of a block.  Locality: any thread."""
    size[0] = 0
    if n == 0 or snappy_uncompressed_length(<const char*>p, n, size) != SNAPPY_OK or size[0] == 0:
        return ST_PROTOCOL
    return ST_OK if size[0] <= limit else ST_LIMIT


cdef int unpack_block(const uint8_t* p, size_t n, size_t limit, Buf* out) noexcept nogil:
    """Append the content of one block of at most ``limit`` bytes.  Locality: owner of ``out``."""
    cdef size_t size = 0
    cdef int status = unpacked_size(p, n, limit, &size)
    if status != ST_OK:
        return status
    # A small block can claim a large size: no memory is allocated before the block is checked.
    if size > 65536 and size // 32 > n and snappy_validate_compressed_buffer(<const char*>p, n) != SNAPPY_OK:
        return ST_PROTOCOL
    if buf_reserve(out, size) != ST_OK:
        return ST_NO_MEMORY
    if snappy_uncompress(<const char*>p, n, <char*>(out.p + out.n), &size) != SNAPPY_OK:
        return ST_PROTOCOL
    out.n += size
    return ST_OK
