"""Bit operations and cache hints; all but the last compile to one instruction."""

cdef enum:
    LINE = 64               # bytes of a cache line


cdef extern from * nogil:
    int leading_zeros "__builtin_clzll"(unsigned long long v) noexcept      # v must not be 0
    int count_ones "__builtin_popcountll"(unsigned long long v) noexcept
    bint unlikely(bint condition) noexcept                                  # returns `condition`, which is seldom true


cdef extern from "dp_plat.h" nogil:
    void* line_alloc "dp_line_alloc"(size_t n) noexcept                     # begins with a line; free() takes it
    void prefetch "dp_prefetch"(const void* p) noexcept                     # a hint: any address is harmless
    void prefetch_write "dp_prefetch_write"(const void* p) noexcept


cdef inline void prefetch_range(const void* p, size_t n) noexcept nogil:
    """Ask for the lines of some bytes, up to 1 KiB: behind that the processor goes on by itself.

    Locality: any thread.  Locks: none.
    """
    cdef size_t at = 0
    while at < min(n, <size_t>16 * LINE):
        prefetch(<const char*>p + at)
        at += LINE
