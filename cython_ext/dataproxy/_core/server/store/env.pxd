"""The directory of a durable store: its LMDB environment (open, format check, read transactions, key layout), its
files, and space that is reserved on the disk.

One process opens an environment once (the library's locks are per process), so the writer and all
readers of a process share a ``StoreEnv``.

The reserve is released when the disk is full, so that retention can still work: dropping entries needs new pages before
it frees old ones.
"""

from libc.errno cimport ENAMETOOLONG
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, strlen

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.lmdb cimport MDB_dbi, MDB_env, MDB_txn, MDB_val
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t


cdef enum StoreConst:
    STORE_FORMAT = 2
    KEY_LOG = 4 + 255           # logs: partition u32, topic
    KEY_STREAM = 4 + 255        # streams: log u32, name
    KEY_ENTRY = 12              # entries: log u32, offset u64
    KEY_INDEX = 16              # index: log u32, stream number u32, offset u64
    LOG_ROW = 48                # id u32, first u64, next u64, entries u64, records u64, bytes u64, checksum u32
    STREAM_ROW = 32             # stream number u32, entries u64, records u64, bytes u64, checksum u32
    ROW_CRC = 4                 # CRC-32C of key and row, the last of each row of logs, streams, ids and the clock
    IDS_KEY = 16
    NAMES_ROW = 8 + 8 + 4       # first offset of new logs u64, times that names were given up u64, checksum u32


cdef enum EnvFault:             # beside the library's (negative) and the system's (positive) codes
    FAULT_FORMAT = -20001       # not a store of ours
    FAULT_VERSION = -20002      # another format version
    FAULT_TRUNCATED = -20003    # the file is shorter than its own header says
    FAULT_ROW = -20004          # a row that cannot be read
    FAULT_MISSING = -20005      # no store there
    FAULT_GONE = -20006         # its files were removed or replaced
    FAULT_OWNER = -20007        # somebody else has written to it
    FAULT_CHECKSUM = -20008     # an entry is not what was stored


ctypedef struct StoreEnv:
    MDB_env* env
    MDB_dbi meta
    MDB_dbi logs
    MDB_dbi streams
    MDB_dbi entries
    MDB_dbi index
    MDB_dbi ids
    MDB_dbi blocks              # this and the next are of the writer alone: readers have no use for them
    MDB_dbi offsets
    uint8_t ids_key[IDS_KEY]    # for the hashes of the de-duplication window
    uint32_t version            # format version found
    pthread_mutex_t mutex       # guards the next two
    pthread_cond_t cond
    int readers                 # transactions under way
    bint exclusive              # the map is being changed
    bint ready                  # mutex and cond are initialised


# `create` also makes directory content that is missing.  ST_OK, or ST_STORE with *error.
cdef int env_open(StoreEnv* e, const char* path, bint create, bint read_only, size_t map_bytes,
                  int* error) noexcept nogil
cdef void env_close(StoreEnv* e) noexcept nogil
cdef int env_resize(StoreEnv* e, size_t map_bytes) noexcept nogil
cdef int env_take_over(StoreEnv* e) noexcept nogil
cdef int env_reopen(StoreEnv* e, const char* path, size_t map_bytes) noexcept nogil
# What names begin with after some were given up; zeros before that.
cdef int env_names(StoreEnv* e, MDB_txn* txn, uint64_t* floor, uint64_t* generation) noexcept nogil
cdef int read_begin(StoreEnv* e, MDB_txn** txn) noexcept nogil
cdef void read_end(StoreEnv* e, MDB_txn* txn) noexcept nogil
cdef const char* env_error(int error) noexcept nogil
cdef void row_seal(const MDB_val* key, uint8_t* row, size_t size) noexcept nogil        # writes the checksum at its end
cdef bint row_fits(const MDB_val* key, const MDB_val* value, size_t size) noexcept nogil
cdef MDB_val key_meta(const char* name) noexcept nogil
cdef MDB_val key_entry(uint8_t* out, uint32_t log, uint64_t offset) noexcept nogil
cdef MDB_val key_index(uint8_t* out, uint32_t log, uint32_t stream, uint64_t offset) noexcept nogil
cdef MDB_val key_name(uint8_t* out, uint32_t number, Slice name) noexcept nogil   # a log or a stream


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
    """Write a path to ``out``, of PATH_ROOM bytes: 0 or ENAMETOOLONG.  Locality: any thread.  Locks: none."""
    cdef size_t n = strlen(folder)
    cdef size_t m = strlen(file)
    if n + m + 2 > PATH_ROOM:
        return ENAMETOOLONG
    memcpy(out, folder, n)
    out[n] = c'/'
    memcpy(out + n + 1, file, m + 1)
    return 0


cdef void reserve_make(const char* folder) noexcept nogil
cdef bint reserve_drop(const char* folder) noexcept nogil
cdef bint reserve_probe(const char* folder, uint64_t wanted) noexcept nogil
