"""Reserved space on the disk that is released when the disk is full, so that retention can still work.

Dropping entries needs new pages before it frees old ones.
"""

from libc.stdint cimport uint64_t


cdef void reserve_make(const char* folder) noexcept nogil
cdef bint reserve_drop(const char* folder) noexcept nogil
cdef bint reserve_probe(const char* folder, uint64_t wanted) noexcept nogil
