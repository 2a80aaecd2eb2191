"""Opening, checking and sharing the LMDB environment of a durable store; the files and the reserve of its directory.

Locks: none, except where a function says otherwise.
"""

from libc.errno cimport EACCES, EINVAL, ENOENT, ENOTDIR, EROFS, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset, strlen
from posix.fcntl cimport O_CLOEXEC, O_CREAT, O_DIRECTORY, O_RDONLY, O_RDWR, O_WRONLY, open
from posix.stat cimport fstat, stat, struct_stat
from posix.unistd cimport close, fsync, ftruncate

from dataproxy._core.base.crc cimport crc32c
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_STORE
from dataproxy._core.server.store.stages cimport STAGE_OPENING, stage_passed
from dataproxy._core.plat.endian cimport load_be32, load_be64, store_be32, store_be64
from dataproxy._core.plat.lmdb cimport (
    MDB_CREATE, MDB_MAP_RESIZED, MDB_NOMEMINIT, MDB_NORDAHEAD, MDB_NOTFOUND, MDB_NOTLS, MDB_PANIC, MDB_RDONLY,
    MDB_SUCCESS, MDB_dbi, MDB_env, MDB_envinfo, MDB_stat, MDB_txn, MDB_val, mdb_dbi_open, mdb_env_close,
    mdb_env_create, mdb_env_get_fd, mdb_env_info, mdb_env_open, mdb_env_set_mapsize, mdb_env_set_maxdbs, mdb_env_stat,
    mdb_get, mdb_put, mdb_reader_check, mdb_stat, mdb_strerror, mdb_txn_abort, mdb_txn_begin, mdb_txn_commit,
)
from dataproxy._core.plat.random cimport getrandom
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_wait, pthread_mutex_destroy,
    pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.plat.file cimport posix_fallocate

cdef enum Reserve:
    RESERVE_BYTES = 4 << 20


cdef int env_open(StoreEnv* e, const char* path, bint create, bint read_only, size_t map_bytes,
                  int* error) noexcept nogil:
    """Open the store in directory ``path`` and check its format.

    ``map_bytes`` 0 keeps the size limit that the file has.
    Locality: any thread, once for each directory in a process.
    """
    memset(e, 0, sizeof(StoreEnv))
    if pthread_mutex_init(&e.mutex, NULL) != 0 or pthread_cond_init(&e.cond, NULL) != 0:
        return ST_NO_MEMORY
    e.ready = True
    error[0] = _open(e, path, create, create, read_only, map_bytes)
    return ST_OK if error[0] == 0 else ST_STORE


cdef void env_close(StoreEnv* e) noexcept nogil:
    """Close the environment; no transaction may be under way.  Locality: owner."""
    if e.env != NULL:
        mdb_env_close(e.env)
    if e.ready:
        pthread_mutex_destroy(&e.mutex)
        pthread_cond_destroy(&e.cond)
    memset(e, 0, sizeof(StoreEnv))


cdef int env_resize(StoreEnv* e, size_t map_bytes) noexcept nogil:
    """Set the size limit (0: the one in the file) while no reader of this process is under way.

    Returns 0 or the library's error.
    Locality: any thread without a transaction of its own.
    Locks: takes mutex.
    """
    cdef MDB_envinfo info
    cdef int rc = MDB_PANIC
    _enter_exclusive(e)
    if e.env != NULL:
        mdb_env_info(e.env, &info)
        rc = mdb_env_set_mapsize(e.env, map_bytes)
        if rc != 0 and rc != EINVAL and mdb_env_set_mapsize(e.env, info.me_mapsize) != 0:
            e.env = NULL        # no map is left; closing it would unmap foreign memory, so it is left behind
    _leave_exclusive(e)
    return rc


cdef int env_take_over(StoreEnv* e) noexcept nogil:
    """Make the last commit of a killed writer visible: it may be in the file without being announced to readers.

    The library announces it when another writer takes the writer lock, not when a reader begins.
    Returns 0 or the library's error.
    Locality: any thread without a transaction of its own.
    Locks: takes mutex and the library's writer lock, one after the other.
    """
    cdef MDB_txn* txn = NULL
    cdef int rc = MDB_PANIC
    _enter_read(e)
    if e.env != NULL:
        rc = mdb_txn_begin(e.env, NULL, 0, &txn)
    if rc == MDB_SUCCESS:
        mdb_txn_abort(txn)
    _leave_read(e)
    return rc


cdef int env_reopen(StoreEnv* e, const char* path, size_t map_bytes) noexcept nogil:
    """Open the environment again after the library declared it unusable.

    Locality: the appending thread, without a transaction.
    Locks: takes mutex.
    """
    cdef int rc
    _enter_exclusive(e)
    if e.env != NULL:
        mdb_env_close(e.env)
        e.env = NULL
    rc = _open(e, path, False, True, False, map_bytes)      # what is not there any more is not made again
    _leave_exclusive(e)
    return rc


cdef int env_names(StoreEnv* e, MDB_txn* txn, uint64_t* floor, uint64_t* generation) noexcept nogil:
    """Read the row about names that were given up: 0 or an error.  Locality: any thread."""
    cdef MDB_val key = key_meta(b"names")
    cdef MDB_val value
    cdef int rc = mdb_get(txn, e.meta, &key, &value)
    floor[0] = 0
    generation[0] = 0
    if rc == MDB_NOTFOUND:
        return 0
    if rc == 0 and not row_fits(&key, &value, NAMES_ROW):
        rc = FAULT_ROW
    if rc == 0:
        floor[0] = load_be64(value.mv_data)
        generation[0] = load_be64(<const uint8_t*>value.mv_data + 8)
    return rc


cdef int read_begin(StoreEnv* e, MDB_txn** txn) noexcept nogil:
    """Begin a read transaction: 0 or the library's error.  Every success needs ``read_end``.

    Locality: any thread.
    Locks: takes mutex.
    """
    cdef int rc
    cdef int tries = 0
    while True:
        _enter_read(e)
        rc = MDB_PANIC if e.env == NULL else mdb_txn_begin(e.env, NULL, MDB_RDONLY, txn)
        if rc == MDB_SUCCESS:
            return rc
        _leave_read(e)
        tries += 1
        if rc != MDB_MAP_RESIZED or tries > 8:
            return rc
        rc = env_resize(e, 0)      # another process has made the store larger
        if rc != MDB_SUCCESS:
            return rc


cdef void read_end(StoreEnv* e, MDB_txn* txn) noexcept nogil:
    """End a read transaction.  Locality: any thread.  Locks: takes mutex."""
    mdb_txn_abort(txn)
    _leave_read(e)


cdef const char* env_error(int error) noexcept nogil:
    """Return the text for an error code of this module, the library or the system.

    Locality: any thread.
    """
    if error == FAULT_FORMAT: return "it is not a hub store"
    if error == FAULT_VERSION: return "it has another format version"
    if error == FAULT_TRUNCATED: return "data.mdb is shorter than its own header says"
    if error == FAULT_ROW: return "a row cannot be read"
    if error == FAULT_MISSING: return "there is no store"
    if error == FAULT_GONE: return "its files were removed or replaced while it was open"
    if error == FAULT_OWNER: return "another process has written to it"
    if error == FAULT_CHECKSUM: return "an entry is not what was stored: its checksum differs"
    return mdb_strerror(error)


cdef void row_seal(const MDB_val* key, uint8_t* row, size_t size) noexcept nogil:
    """Write the checksum of key and row to the row's end.  Locality: any thread."""
    store_be32(row + size - ROW_CRC, crc32c(crc32c(0, key.mv_data, key.mv_size), row, size - ROW_CRC))


cdef bint row_fits(const MDB_val* key, const MDB_val* value, size_t size) noexcept nogil:
    """Tell whether a row has its size and checksum.  Locality: any thread."""
    if value.mv_size != size or size < ROW_CRC:
        return False
    return load_be32(<const uint8_t*>value.mv_data + size - ROW_CRC) == crc32c(
        crc32c(0, key.mv_data, key.mv_size), value.mv_data, size - ROW_CRC)


cdef MDB_val key_meta(const char* name) noexcept nogil:
    """Return the key of a row of ``meta``.  Locality: any thread."""
    cdef MDB_val key
    key.mv_data = <void*>name
    key.mv_size = strlen(name)
    return key


cdef MDB_val key_entry(uint8_t* out, uint32_t log, uint64_t offset) noexcept nogil:
    """Write the key of an entry to ``out``.  Locality: any thread."""
    cdef MDB_val key
    store_be32(out, log)
    store_be64(out + 4, offset)
    key.mv_data = out
    key.mv_size = KEY_ENTRY
    return key


cdef MDB_val key_index(uint8_t* out, uint32_t log, uint32_t stream, uint64_t offset) noexcept nogil:
    """Write the key of an index row to ``out``.  Locality: any thread."""
    cdef MDB_val key
    store_be32(out, log)
    store_be32(out + 4, stream)
    store_be64(out + 8, offset)
    key.mv_data = out
    key.mv_size = KEY_INDEX
    return key


cdef MDB_val key_name(uint8_t* out, uint32_t number, Slice name) noexcept nogil:
    """Write the key of a log row (partition, topic) or stream row (log, stream) to ``out``.

    The name has at most CATALOG_NAME_MAX bytes.
    Locality: any thread.
    """
    cdef MDB_val key
    store_be32(out, number)
    if name.n:
        memcpy(out + 4, name.p, name.n)
    key.mv_data = out
    key.mv_size = 4 + name.n
    return key


cdef int _open(StoreEnv* e, const char* path, bint create, bint writes, bint read_only,
               size_t map_bytes) noexcept nogil:
    """Open environment and databases: 0 or an error.  Locality: as the caller."""
    cdef MDB_env* env = NULL
    cdef MDB_txn* txn = NULL
    cdef unsigned int flags = MDB_NOTLS | MDB_NORDAHEAD | MDB_NOMEMINIT | (MDB_RDONLY if read_only else 0)
    cdef int dead = 0
    cdef int rc = files_prepare(path)
    if rc == 0:
        rc = mdb_env_create(&env)
    if rc:
        return rc
    rc = mdb_env_set_maxdbs(env, 9)
    if rc == 0 and map_bytes:
        rc = mdb_env_set_mapsize(env, map_bytes)
    if rc == 0:
        rc = mdb_env_open(env, path, flags, 0o640)
    if rc == 0:
        rc = _check_length(env, path)
    if rc == 0 and not read_only:
        mdb_reader_check(env, &dead)
    if rc == 0:
        rc = mdb_txn_begin(env, NULL, 0 if writes else MDB_RDONLY, &txn)
    if rc == 0:
        rc = _open_databases(e, txn, create)
        stage_passed(STAGE_OPENING)
        if rc == 0:
            rc = mdb_txn_commit(txn)
        else:
            mdb_txn_abort(txn)
    if rc == 0:
        e.env = env
    else:
        mdb_env_close(env)
    return rc


cdef int _check_length(MDB_env* env, const char* path) noexcept nogil:
    """Refuse a data file that is cut short: reading beyond its end through the map would end the process.

    Locality: as the caller.
    """
    cdef MDB_envinfo info
    cdef MDB_stat st
    cdef struct_stat on_disk
    cdef char name[PATH_ROOM]
    cdef int rc = files_path(path, b"data.mdb", name)
    if rc:
        return rc
    if stat(name, &on_disk) != 0:
        return errno
    mdb_env_stat(env, &st)
    mdb_env_info(env, &info)
    if <uint64_t>on_disk.st_size < (<uint64_t>info.me_last_pgno + 1) * st.ms_psize:
        return FAULT_TRUNCATED
    return 0


cdef int _open_databases(StoreEnv* e, MDB_txn* txn, bint create) noexcept nogil:
    """Check the format row and open the databases.  Locality: as the caller."""
    cdef MDB_dbi root = 0
    cdef MDB_stat st
    cdef unsigned int flags = MDB_CREATE if create else 0
    cdef bint fresh
    cdef int rc = mdb_dbi_open(txn, NULL, 0, &root)
    if rc == 0:
        rc = mdb_stat(txn, root, &st)
    if rc:
        return rc
    fresh = st.ms_entries == 0
    if fresh and not create:
        return FAULT_MISSING
    rc = mdb_dbi_open(txn, b"meta", flags if fresh else 0, &e.meta)
    if rc == MDB_NOTFOUND:
        return FAULT_FORMAT
    if rc == 0:
        rc = _check_format(e, txn, fresh)
    if rc == 0:
        rc = mdb_dbi_open(txn, b"logs", flags, &e.logs)
    if rc == 0:
        rc = mdb_dbi_open(txn, b"streams", flags, &e.streams)
    if rc == 0:
        rc = mdb_dbi_open(txn, b"entries", flags, &e.entries)
    if rc == 0:
        rc = mdb_dbi_open(txn, b"index", flags, &e.index)
    if rc == 0:
        rc = mdb_dbi_open(txn, b"ids", flags, &e.ids)
    if rc == 0 and create:
        rc = mdb_dbi_open(txn, b"blocks", flags, &e.blocks)
    if rc == 0 and create:
        rc = mdb_dbi_open(txn, b"offsets", flags, &e.offsets)
    if rc == 0:
        rc = _read_ids_key(e, txn, fresh)
    return rc


cdef int _read_ids_key(StoreEnv* e, MDB_txn* txn, bint fresh) noexcept nogil:
    """Read the key for hashes of ids, or put one to a fresh store.  Locality: as the caller."""
    cdef MDB_val key = key_meta(b"ids key")
    cdef MDB_val value
    cdef int rc
    if fresh:
        if getrandom(e.ids_key, IDS_KEY, 0) != IDS_KEY:
            return errno
        value.mv_data = e.ids_key
        value.mv_size = IDS_KEY
        return mdb_put(txn, e.meta, &key, &value, 0)
    rc = mdb_get(txn, e.meta, &key, &value)
    if rc == MDB_NOTFOUND or (rc == 0 and value.mv_size != IDS_KEY):
        rc = FAULT_ROW
    if rc == 0:
        memcpy(e.ids_key, value.mv_data, IDS_KEY)
    return rc


cdef int _check_format(StoreEnv* e, MDB_txn* txn, bint fresh) noexcept nogil:
    """Read the format row, or write it to a fresh store.  Locality: as the caller."""
    cdef const char* mark = b"dataproxy hub store"
    cdef size_t n = strlen(mark)
    cdef uint8_t row[32]
    cdef MDB_val key = key_meta(b"format")
    cdef MDB_val value
    cdef int rc
    if fresh:
        memcpy(row, mark, n)
        store_be32(row + n, STORE_FORMAT)
        value.mv_data = row
        value.mv_size = n + 4
        e.version = STORE_FORMAT
        return mdb_put(txn, e.meta, &key, &value, 0)
    rc = mdb_get(txn, e.meta, &key, &value)
    if rc == MDB_NOTFOUND:
        return FAULT_FORMAT
    if rc:
        return rc
    if value.mv_size != n + 4 or memcmp(value.mv_data, mark, n) != 0:
        return FAULT_FORMAT
    e.version = load_be32(<uint8_t*>value.mv_data + n)
    return 0 if e.version == STORE_FORMAT else FAULT_VERSION


cdef void _enter_exclusive(StoreEnv* e) noexcept nogil:
    """Wait until this process has no reader and keep new ones out.  Locality: any thread.  Locks: takes mutex."""
    pthread_mutex_lock(&e.mutex)
    while e.exclusive:
        pthread_cond_wait(&e.cond, &e.mutex)
    e.exclusive = True
    while e.readers:
        pthread_cond_wait(&e.cond, &e.mutex)
    pthread_mutex_unlock(&e.mutex)


cdef void _leave_exclusive(StoreEnv* e) noexcept nogil:
    """Let readers in again.  Locality: any thread.  Locks: takes mutex."""
    pthread_mutex_lock(&e.mutex)
    e.exclusive = False
    pthread_cond_broadcast(&e.cond)
    pthread_mutex_unlock(&e.mutex)


cdef void _enter_read(StoreEnv* e) noexcept nogil:
    """Keep the environment as it is until ``_leave_read``.  Locality: any thread.  Locks: takes mutex."""
    pthread_mutex_lock(&e.mutex)
    while e.exclusive:
        pthread_cond_wait(&e.cond, &e.mutex)
    e.readers += 1
    pthread_mutex_unlock(&e.mutex)


cdef void _leave_read(StoreEnv* e) noexcept nogil:
    """Count a reader out.  Locality: any thread.  Locks: takes mutex."""
    pthread_mutex_lock(&e.mutex)
    e.readers -= 1
    if e.readers == 0:
        pthread_cond_broadcast(&e.cond)
    pthread_mutex_unlock(&e.mutex)


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


cdef void reserve_make(const char* folder) noexcept nogil:
    """Allocate the reserve if it is missing; on a full disk it stays empty.

    Locality: appending thread, or before it starts.
    """
    cdef struct_stat found
    cdef int fd = _open_reserve(folder)
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
    cdef int fd = _open_reserve(folder)
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
    cdef int fd = _open_reserve(folder)
    if fd < 0:
        return False
    if fstat(fd, &found) == 0:
        there = posix_fallocate(fd, found.st_size, <int64_t>wanted) == 0
        ftruncate(fd, found.st_size)
    close(fd)
    return there


cdef int _open_reserve(const char* folder) noexcept nogil:
    """Open the reserve file: its descriptor, or -1.  Locality: appending thread."""
    cdef char name[PATH_ROOM]
    if files_path(folder, b"reserve", name) != 0:
        return -1
    return open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o640)
