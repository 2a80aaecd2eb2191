"""The files of a store's directory: which they are, room for the lock file, and their names on disk.

Locality: any thread.  Locks: none.
"""

from libc.errno cimport ENAMETOOLONG
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, strlen

from dataproxy._core.plat.lmdb cimport MDB_env


cdef enum StoreFilesConst:
    PATH_ROOM = 4096
    LOCK_BYTES = 8192           # of the library's lock file with its usual number of readers


ctypedef struct FileId:
    uint64_t device
    uint64_t inode


ctypedef struct StoreFiles:     # as they were when the writer opened them
    FileId data
    FileId readers              # the library's lock file
    FileId claim                # the writer's own


# All: 0 or an error.
cdef int files_note(StoreFiles* f, MDB_env* env, const char* folder) noexcept nogil
cdef int files_check(const StoreFiles* f, const char* folder) noexcept nogil
cdef int files_prepare(const char* folder) noexcept nogil
cdef int files_sync(const char* folder) noexcept nogil


cdef inline int files_path(const char* folder, const char* file, char* out) noexcept nogil:
    """Write a path to ``out``, of PATH_ROOM bytes: 0 or ENAMETOOLONG."""
    cdef size_t n = strlen(folder)
    cdef size_t m = strlen(file)
    if n + m + 2 > PATH_ROOM:
        return ENAMETOOLONG
    memcpy(out, folder, n)
    out[n] = c'/'
    memcpy(out + n + 1, file, m + 1)
    return 0
