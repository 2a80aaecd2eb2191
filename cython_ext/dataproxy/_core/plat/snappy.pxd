"""The snappy library through its C interface."""


cdef extern from "snappy-c.h" nogil:
    ctypedef int snappy_status
    enum:
        SNAPPY_OK
    snappy_status snappy_compress(const char* raw, size_t raw_n, char* out, size_t* out_n) noexcept
    snappy_status snappy_uncompress(const char* packed, size_t packed_n, char* out, size_t* out_n) noexcept
    size_t snappy_max_compressed_length(size_t raw_n) noexcept
    snappy_status snappy_uncompressed_length(const char* packed, size_t packed_n, size_t* raw_n) noexcept
    snappy_status snappy_validate_compressed_buffer(const char* packed, size_t packed_n) noexcept
