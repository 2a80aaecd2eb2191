"""Reservation of space on the file system."""

from posix.types cimport off_t


cdef extern from "fcntl.h" nogil:
    int posix_fallocate(int fd, off_t offset, off_t length) noexcept
