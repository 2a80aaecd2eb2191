"""Messages of a producer, checked and written as they travel."""

from libc.stdint cimport uint64_t


cdef class Ids:
    cdef bytes head
    cdef uint64_t next          # a number of 48 bits


cdef class Encoded:
    cdef readonly str id
    cdef readonly bytes body
    cdef readonly bytes properties
    cdef readonly int flag
    cdef public int sys_flag    # the protocol's marks
