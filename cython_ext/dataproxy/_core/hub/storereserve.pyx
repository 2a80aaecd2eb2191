"""The reserve file of a store directory.

Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t
from posix.fcntl cimport O_CLOEXEC, O_CREAT, O_WRONLY, open
from posix.stat cimport fstat, struct_stat
from posix.unistd cimport close, ftruncate

from dataproxy._core.hub.storefiles cimport PATH_ROOM, files_path
from dataproxy._core.plat.file cimport posix_fallocate

cdef enum Reserve:
    RESERVE_BYTES = 4 << 20


cdef void reserve_make(const char* folder) noexcept nogil:
    """Allocate the reserve if it is missing; on a full disk it stays empty.

    Locality: appending thread, or before it starts.
    """
    cdef struct_stat found
    cdef int fd = _open(folder)
    if fd < 0:
        return
    if fstat(fd, &found) == 0 and found.st_size < RESERVE_BYTES and posix_fallocate(fd, 0, RESERVE_BYTES) != 0:
        ftruncate(fd, 0)
    close(fd)


cdef bint reserve_drop(const char* folder) noexcept nogil:
    """Give the reserve back to the file system; true if there was one.

    Locality: appending thread.
    """
    cdef struct_stat found
    cdef bint dropped = False
    cdef int fd = _open(folder)
    if fd < 0:
        return False
    if fstat(fd, &found) == 0 and found.st_size > 0:
        dropped = ftruncate(fd, 0) == 0
    close(fd)
    return dropped


cdef bint reserve_probe(const char* folder, uint64_t wanted) noexcept nogil:
    """Tell whether the file system has so many bytes: they are added to the reserve and given back.

    Locality: appending thread.
    """
    cdef struct_stat found
    cdef bint there = False
    cdef int fd = _open(folder)
    if fd < 0:
        return False
    if fstat(fd, &found) == 0:
        there = posix_fallocate(fd, found.st_size, <int64_t>wanted) == 0
        ftruncate(fd, found.st_size)
    close(fd)
    return there


cdef int _open(const char* folder) noexcept nogil:
    """Open the reserve file: its descriptor, or -1.  Locality: appending thread."""
    cdef char name[PATH_ROOM]
    if files_path(folder, b"reserve", name) != 0:
        return -1
    return open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o640)
