"""eventfd: a descriptor that one thread makes readable for another."""

from libc.stdint cimport uint64_t


cdef extern from "sys/eventfd.h" nogil:
    int EFD_CLOEXEC
    int EFD_NONBLOCK
    ctypedef uint64_t eventfd_t
    int eventfd(unsigned int initial, int flags) noexcept
    int eventfd_read(int fd, eventfd_t* value) noexcept
    int eventfd_write(int fd, eventfd_t value) noexcept
