"""The part of liblmdb's C interface that the durable store uses."""

from libc.stddef cimport size_t


cdef extern from "lmdb.h" nogil:
    ctypedef struct MDB_env:
        pass
    ctypedef struct MDB_txn:
        pass
    ctypedef struct MDB_cursor:
        pass
    ctypedef unsigned int MDB_dbi
    ctypedef struct MDB_val:
        size_t mv_size
        void* mv_data
    ctypedef struct MDB_stat:
        unsigned int ms_psize
        size_t ms_entries
    ctypedef struct MDB_envinfo:
        size_t me_mapsize
        size_t me_last_pgno
    ctypedef enum MDB_cursor_op:
        MDB_FIRST
        MDB_NEXT
        MDB_SET_RANGE

    const unsigned int MDB_RDONLY
    const unsigned int MDB_NOTLS
    const unsigned int MDB_NORDAHEAD
    const unsigned int MDB_NOMEMINIT
    const unsigned int MDB_CREATE
    const unsigned int MDB_RESERVE
    const unsigned int MDB_APPEND
    const unsigned int MDB_NOOVERWRITE
    const int MDB_SUCCESS
    const int MDB_KEYEXIST
    const int MDB_NOTFOUND
    const int MDB_CORRUPTED
    const int MDB_PAGE_NOTFOUND
    const int MDB_PANIC
    const int MDB_VERSION_MISMATCH
    const int MDB_INVALID
    const int MDB_MAP_FULL
    const int MDB_MAP_RESIZED
    const int MDB_READERS_FULL

    const char* mdb_strerror(int error) noexcept
    int mdb_env_create(MDB_env** env) noexcept
    int mdb_env_open(MDB_env* env, const char* path, unsigned int flags, unsigned int mode) noexcept
    void mdb_env_close(MDB_env* env) noexcept
    int mdb_env_stat(MDB_env* env, MDB_stat* stat) noexcept
    int mdb_env_info(MDB_env* env, MDB_envinfo* info) noexcept
    int mdb_env_get_fd(MDB_env* env, int* fd) noexcept
    int mdb_env_set_mapsize(MDB_env* env, size_t size) noexcept
    int mdb_env_set_maxdbs(MDB_env* env, MDB_dbi dbs) noexcept
    int mdb_reader_check(MDB_env* env, int* dead) noexcept
    int mdb_txn_begin(MDB_env* env, MDB_txn* parent, unsigned int flags, MDB_txn** txn) noexcept
    size_t mdb_txn_id(MDB_txn* txn) noexcept
    int mdb_txn_commit(MDB_txn* txn) noexcept
    void mdb_txn_abort(MDB_txn* txn) noexcept
    int mdb_dbi_open(MDB_txn* txn, const char* name, unsigned int flags, MDB_dbi* dbi) noexcept
    int mdb_stat(MDB_txn* txn, MDB_dbi dbi, MDB_stat* stat) noexcept
    int mdb_get(MDB_txn* txn, MDB_dbi dbi, MDB_val* key, MDB_val* data) noexcept
    int mdb_put(MDB_txn* txn, MDB_dbi dbi, MDB_val* key, MDB_val* data, unsigned int flags) noexcept
    int mdb_del(MDB_txn* txn, MDB_dbi dbi, MDB_val* key, MDB_val* data) noexcept
    int mdb_cursor_open(MDB_txn* txn, MDB_dbi dbi, MDB_cursor** cursor) noexcept
    void mdb_cursor_close(MDB_cursor* cursor) noexcept
    int mdb_cursor_get(MDB_cursor* cursor, MDB_val* key, MDB_val* data, MDB_cursor_op op) noexcept
    int mdb_cursor_del(MDB_cursor* cursor, unsigned int flags) noexcept
