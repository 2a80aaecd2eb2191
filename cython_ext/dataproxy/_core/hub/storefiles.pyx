"""Checks and preparation of the files of a store's directory.

Locks: none.
"""

from libc.errno cimport EACCES, EINVAL, ENOENT, ENOTDIR, EROFS, errno
from libc.stdint cimport uint64_t
from posix.fcntl cimport O_CLOEXEC, O_CREAT, O_DIRECTORY, O_RDONLY, O_RDWR, open
from posix.stat cimport fstat, stat, struct_stat
from posix.unistd cimport close, fsync

from dataproxy._core.hub.storeenv cimport FAULT_GONE
from dataproxy._core.hub.storereserve cimport reserve_drop
from dataproxy._core.plat.file cimport posix_fallocate
from dataproxy._core.plat.lmdb cimport MDB_env, mdb_env_get_fd


cdef int files_note(StoreFiles* f, MDB_env* env, const char* folder) noexcept nogil:
    """Note the files of an open environment.  Locality: owner."""
    cdef struct_stat found
    cdef int fd = -1
    cdef int rc = mdb_env_get_fd(env, &fd)
    if rc == 0 and fstat(fd, &found) != 0:
        rc = errno
    if rc:
        return rc
    f.data = _id(&found)
    rc = _look(folder, b"lock.mdb", &f.readers)
    if rc == 0:
        rc = _look(folder, b"writer.lock", &f.claim)
    return rc if rc else files_check(f, folder)


cdef int files_check(const StoreFiles* f, const char* folder) noexcept nogil:
    """Tell whether the files are still at their names.

    If the data file was removed or replaced, commits would be lost.  If a lock file was, other writers could work at
    the same time.
    Locality: appending thread.
    """
    cdef int rc = _same(folder, b"data.mdb", &f.data)
    if rc == 0:
        rc = _same(folder, b"lock.mdb", &f.readers)
    if rc == 0:
        rc = _same(folder, b"writer.lock", &f.claim)
    return rc


cdef int files_prepare(const char* folder) noexcept nogil:
    """Allocate the blocks of the lock file: the library writes to it as mapped memory, and a missing block ends the
    process.

    On a full disk the reserve is released for it.
    Locality: any thread, before the environment is opened.
    """
    cdef struct_stat found
    cdef char name[PATH_ROOM]
    cdef uint64_t wanted = LOCK_BYTES
    cdef int fd
    cdef int rc = files_path(folder, b"lock.mdb", name)
    if rc:
        return rc
    if stat(name, &found) == 0:
        if found.st_size > LOCK_BYTES:
            wanted = <uint64_t>found.st_size
        # Not even opened without need: closing it would end the library's locks of this process.
        if <uint64_t>found.st_size >= wanted and <uint64_t>found.st_blocks * 512 >= wanted:
            return 0
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0o640)
    if fd < 0:
        return 0 if errno == EROFS or errno == EACCES else errno    # the library reads without one there, or says so
    rc = posix_fallocate(fd, 0, <long>wanted)
    if rc and reserve_drop(folder):
        rc = posix_fallocate(fd, 0, <long>wanted)
    close(fd)
    return rc


cdef int files_sync(const char* folder) noexcept nogil:
    """Write a directory to disk, so that its file names survive a power failure.  Locality: any thread."""
    cdef int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    cdef int rc = 0
    if fd < 0:
        return errno
    if fsync(fd) != 0 and errno != EINVAL:      # a file system that cannot, has nothing to do
        rc = errno
    close(fd)
    return rc


cdef FileId _id(const struct_stat* found) noexcept nogil:
    """Return which file it is.  Locality: any thread."""
    cdef FileId id
    id.device = <uint64_t>found.st_dev
    id.inode = <uint64_t>found.st_ino
    return id


cdef int _look(const char* folder, const char* file, FileId* out) noexcept nogil:
    """Find out which file has a name.  Locality: any thread."""
    cdef struct_stat found
    cdef char name[PATH_ROOM]
    cdef int rc = files_path(folder, file, name)
    if rc:
        return rc
    if stat(name, &found) != 0:
        return FAULT_GONE if errno == ENOENT or errno == ENOTDIR else errno
    out[0] = _id(&found)
    return 0


cdef int _same(const char* folder, const char* file, const FileId* wanted) noexcept nogil:
    """Tell whether a name still stands for a file.  Locality: appending thread."""
    cdef FileId id
    cdef int rc = _look(folder, file, &id)
    if rc == 0 and (id.device != wanted.device or id.inode != wanted.inode):
        rc = FAULT_GONE
    return rc
