"""The part of a producer that Deliveries and streams use."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.producer.engine cimport Engine


cdef int64_t microseconds(object seconds) except -1
cdef int check_own(object thing, uint32_t generation) except -1


cdef class CoreHandle:
    cdef Engine* engine         # of this process if `generation` is its own; that of a parent process is never touched
    cdef uint32_t generation    # of the process that made the engine; GIL
    cdef readonly bint closed   # no message is accepted any more; GIL
    cdef int64_t delivery_us    # constant
    cdef int64_t max_block_us   # constant
    cdef int64_t waited_us      # that threads have waited for room, all together; GIL
    cdef int64_t limit_bytes    # of the buffer; constant
    cdef size_t hold_from       # bytes from which on bodies are sent from where they lie; constant
    cdef int key_buckets        # 0: ordering is off; constant
    cdef bint blocks            # on_full="block"; constant
    cdef bint suspends          # of an AsyncProducer: only one thread may wait for room; constant
    cdef unsigned long waiting_thread       # ident of that thread; GIL
    cdef bint raises            # on_full="raise"; constant
    cdef dict watchers          # address of a result -> [Watch]; GIL
    cdef list late              # (Watch, fields): registered after the result came, for the dispatcher; GIL
    cdef bint dispatched        # the dispatcher has ended; GIL
    cdef readonly set _callers  # idents of the threads that run this producer's callbacks now; GIL
    cdef tuple told             # fields of the pack that was asked for last; GIL
    cdef char told_id[32]       # id of that pack; GIL
    cdef public object _makes_callbacks     # function: do callbacks run on the calling thread?  None: not known
    cdef public object _callback_failed     # called with a callback that raised, while its exception is handled

    cdef int check_may_wait(self, str what) except -1
    cdef int check_usable(self) except -1
    cdef int look_for_signals(self) except -1
    cdef bint suspended(self)
    cdef bint calls_back(self) except -1
    cdef int wait_room(self, int64_t seen, int64_t deadline_us) except -1
