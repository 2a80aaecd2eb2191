"""Snappy blocks in growing buffers; the caller always bounds the uncompressed size."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.buf cimport Buf


cdef size_t pack_bound(size_t n) noexcept nogil                            # most bytes that packing n can give
cdef int pack_block(const uint8_t* p, size_t n, Buf* out) noexcept nogil   # append one block
# Append the content of one block.  ST_PROTOCOL: not a block, or empty; ST_LIMIT: more than `limit` bytes.
cdef int unpack_block(const uint8_t* p, size_t n, size_t limit, Buf* out) noexcept nogil
# Size of the content of one block; only the block's header is read.
cdef int unpacked_size(const uint8_t* p, size_t n, size_t limit, size_t* size) noexcept nogil
