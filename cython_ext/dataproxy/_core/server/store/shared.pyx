"""Opening a store directory once in a process, and turning its faults into ``StoreError``.

Locality: GIL.  Locks: none, except where a function says otherwise.
"""

import os
import threading
import weakref

from dataproxy.errors import StoreError

from libc.errno cimport EACCES, EDQUOT, ENOENT, ENOSPC, EPERM, EROFS
from libc.stddef cimport size_t
from posix.unistd cimport getpid

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.server.store.env cimport (
    FAULT_CHECKSUM, FAULT_FORMAT, FAULT_GONE, FAULT_MISSING, FAULT_OWNER, FAULT_ROW, FAULT_TRUNCATED, FAULT_VERSION,
    STORE_FORMAT, env_close, env_error, env_open, env_resize, env_take_over, files_sync,
)
from dataproxy._core.plat.lmdb cimport (
    MDB_CORRUPTED,
    MDB_INVALID,
    MDB_MAP_FULL,
    MDB_PAGE_NOTFOUND,
    MDB_READERS_FULL,
    MDB_VERSION_MISMATCH,
)

_open = weakref.WeakValueDictionary()   # (device, inode) of the directory -> SharedEnv
_opening = threading.Lock()             # guards _open
_OWN_FILES = frozenset(("data.mdb", "lock.mdb", "reserve", "writer.lock"))


cdef class SharedEnv:
    """Own one environment; closed with the last reference, and never in a forked child."""

    def __cinit__(self):
        self._pid = os.getpid()

    def __dealloc__(self):
        if self._pid == getpid():       # not os.getpid: the names of this module may be gone when Python ends
            env_close(&self.env)


cdef SharedEnv shared_env(str path, bint create, size_t map_bytes):
    """Return the environment of a directory, opened if need be.

    ``create``: for writing, made when missing.  Raises StoreError.
    Locks: takes _opening.
    """
    cdef SharedEnv shared
    cdef bytes raw = os.fsencode(path)
    cdef const char* text = raw
    cdef int error = 0
    cdef int status
    cdef bint read_only = False
    with _opening:
        prepare_directory(path, create)
        found = os.stat(path)
        key = (found.st_dev, found.st_ino)
        shared = _open.get(key)
        if shared is not None and not (create and shared.read_only) and shared._pid == os.getpid():
            if create:
                with nogil:
                    error = env_resize(&shared.env, map_bytes)
                if error:
                    raise store_fault(error, path, "resize the store")
                with nogil:
                    error = env_take_over(&shared.env)
                if error:
                    raise store_fault(error, path, "open the store")
            return shared
        if not create:
            read_only = not (os.access(path, os.W_OK) and os.access(os.path.join(path, "data.mdb"), os.W_OK))
        shared = SharedEnv()
        shared.path = raw
        shared.read_only = read_only
        with nogil:
            status = env_open(&shared.env, text, create, read_only, map_bytes, &error)
        if status == ST_NO_MEMORY:
            raise MemoryError
        if status != ST_OK:
            if error == FAULT_VERSION:
                raise _version_fault(shared, path)
            raise store_fault(error, path, "open the store")
        _open[key] = shared
        return shared


cdef object store_fault(int error, str path, str doing):
    """Return a StoreError for an error code of the store."""
    cdef str reason = env_error(error).decode("utf-8", "replace")
    cdef bint full = error in (ENOSPC, EDQUOT, MDB_MAP_FULL)
    cdef str hint = "check the file system and the system's log; the directory may have to be restored from a copy"
    cdef str code = "STORE"
    if error in (FAULT_FORMAT, FAULT_MISSING, MDB_INVALID, MDB_VERSION_MISMATCH, ENOENT):
        hint = "give the directory of a hub store, or an empty one to create a store in"
    elif error in (FAULT_TRUNCATED, FAULT_ROW, FAULT_CHECKSUM, MDB_CORRUPTED, MDB_PAGE_NOTFOUND):
        code = "STORE_DAMAGED"
        hint = ("`dataproxy store verify` lists the damage; restore the directory from a copy, or move it away and"
                " start with an empty one")
    elif error in (FAULT_GONE, FAULT_OWNER):
        code = "STORE_TAKEN"
        hint = "the hub stores nothing more there; find out who changed the directory, then start the hub again"
    elif error == MDB_READERS_FULL:
        code = "STORE_READERS"
        hint = "other processes use all reader slots of the store; close some of them"
    elif error in (EACCES, EPERM, EROFS):
        hint = "readers need write permission for lock.mdb, the hub for the whole directory"
    elif full:
        code = "DISK_FULL"
        hint = "free disk space, raise max_bytes, or set a retention limit"
    return StoreError(f"cannot {doing} {path!r}: {reason}", code=code, hint=hint,
                      retriable=full or error == MDB_READERS_FULL, details={"path": path, "error": error})


cdef object entry_fault(str path, str topic, unsigned int partition, unsigned long long offset):
    """Return a StoreError for an entry that is not what was stored."""
    return StoreError(
        f"cannot read entry {offset} of {topic!r} (partition {partition}) in the store {path!r}:"
        " it is missing, or not what was stored: its checksum differs",
        code="STORE_DAMAGED",
        hint=f"later entries can be read from offset {offset + 1} on; `dataproxy store verify` lists all damage",
        details={"path": path, "topic": topic, "partition": partition, "offset": offset, "error": FAULT_CHECKSUM},
    )


def _version_fault(SharedEnv shared, str path):
    """Return the error for another format version."""
    return StoreError(
        f"cannot open the store {path!r}: its format version is {shared.env.version}, not {STORE_FORMAT}",
        hint="use the release that wrote it, or start with an empty directory",
        details={"path": path, "version": shared.env.version, "supported": STORE_FORMAT},
    )


def _make_directory(str path):
    """Make a directory and those above it that are missing; their names survive a power failure.  Raises OSError."""
    cdef bytes above
    cdef int error
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(os.path.abspath(path))
    for path in reversed(missing):
        os.makedirs(path, mode=0o750, exist_ok=True)
        above = os.fsencode(os.path.dirname(os.path.abspath(path)))
        error = files_sync(above)
        if error:
            raise OSError(error, os.strerror(error), path)


cdef int prepare_directory(str path, bint create) except -1:
    """Refuse what cannot be a store before the library touches it; ``create`` makes a missing directory.

    Raises StoreError.
    """
    try:
        if create:
            _make_directory(path)
        names = set(os.listdir(path))
    except OSError as failure:
        raise StoreError(
            f"cannot open the store {path!r}: {failure.strerror}",
            hint="give a directory that this user can read, and that the hub can write",
            details={"path": path, "error": failure.errno},
        ) from failure
    if "data.mdb" in names:
        if create or os.path.getsize(os.path.join(path, "data.mdb")) > 0:
            return 0
        raise store_fault(FAULT_MISSING, path, "open the store")
    if not create:
        raise store_fault(FAULT_MISSING, path, "open the store")
    if names - _OWN_FILES:
        raise StoreError(
            f"cannot create a store in {path!r}: the directory holds {sorted(names - _OWN_FILES)[0]!r}",
            hint="give an empty directory, or one that holds a hub store",
            details={"path": path},
        )
    return 0
