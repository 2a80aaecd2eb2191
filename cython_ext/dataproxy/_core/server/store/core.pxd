"""Facade of the store: opens it, runs the committer, reads."""

from dataproxy._core.server.committer cimport Committer, CommitterLimits, EntryNotice
from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.forks cimport ForkNode
from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.server.store.window.dedupe cimport Dedupe
from dataproxy._core.server.entries cimport EntryDone, StoreOps
from dataproxy._core.server.store.memory cimport MemStore
from dataproxy._core.server.store.txn cimport Store, StoreLimits
from dataproxy._core.server.store.view cimport StoreView
from dataproxy._core.server.store.visits cimport Visitor
from dataproxy._core.server.store.window.windowlog cimport WindowLog


cdef class StoreCore(StoreView):
    cdef Committer* committer       # of this object; valid until it is deallocated
    cdef Committer _committer
    cdef Store _store
    cdef MemStore _memory
    cdef Dedupe _dedupe
    cdef WindowLog _window_log
    cdef bint _has_store
    cdef bint _has_memory
    cdef bint _has_committer
    cdef bint _has_window
    cdef bint _in_loop              # guarded by _gate
    cdef bint _served               # a server takes the entries back
    cdef list _informed             # keeps who is told of appended entries
    cdef object _gate
    cdef object _ended              # set when the loop has returned
    cdef int _claims[2]             # descriptors that hold the locks of the file and of the directory; -1: none
    cdef ForkNode _forks

    cdef int _open_memory(self, const StoreLimits* limits, const CommitterLimits* pace) except -1
    cdef int _open_durable(self, const StoreLimits* limits, const CommitterLimits* pace, size_t map_bytes) except -1
    cdef int _claim(self) except -1
    cdef int _give_up(self) except -1
    cdef int _make_committer(self, const StoreOps* ops, void* store, const CommitterLimits* pace) except -1
    cdef int _open_window(self, int64_t keep_ms, uint64_t max_ids, bint first_wins) except -1
    cdef int _open_unwatched(self) except -1
    cdef const HashKey* window_key(self) noexcept       # NULL without a de-duplication window
    cdef int inform(self, object who, EntryNotice noticed, void* context) except -1     # before the loop starts
    cdef Visitor visitor(self) noexcept
    cdef int set_done(self, EntryDone done) except -1   # before the loop starts
