"""Calls of control on their way from server loops to the thread that answers them, and back.

One queue for each protocol, with bounds: of all calls, of their bytes, and of what one address may have of both.  A
call counts from its entry into the queue until it is answered.  News of a connection, which are few, count for nobody.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t


cdef enum CallConst:
    CALLERS = 1024              # buckets of addresses


ctypedef struct Endpoint:       # an end of a connection: a numeric address and its port
    uint8_t address[16]
    size_t n                    # bytes of it: 4 or 16; 0: not known
    int32_t port


cdef enum CallRole:
    # From a server loop to the thread.
    ROLE_OWED = 0               # a request, whose answer the connection is owed
    ROLE_UNOWED = 1             # what needs no answer: requests of one way, answers, news
    # From the thread to a server loop.
    ROLE_ORDER = 2              # bytes for a connection, in `answer`
    ROLE_END = 3                # the connection is to be closed
    ROLE_WAIT = 4               # a request that is to be called again once it has what it waits for


ctypedef struct Call:           # one block: the struct, then the bytes of peer and request
    Call* next
    int role                    # CallRole
    int kind                    # of ROLE_UNOWED: the protocol's own number for what it is; of ROLE_END: 1 is at once
    bint counted                # it is on the accounts of the queue
    # Origin: the server loop that gets the call back, and the session to answer there.
    void* origin
    uint64_t session
    uint64_t name               # of the address, as in Holder
    uint64_t connection         # the session's number in the hub; this and its ends where they are asked for
    Endpoint near
    Endpoint far
    uint32_t serial
    int32_t version
    int32_t service
    int32_t method
    Slice peer                  # the address as a text
    Slice request
    Buf answer                  # a whole frame, once it is known; empty: there is none


# Takes ownership of an answered call, on the thread that has answered it.
ctypedef void (*CallDone)(void* origin, Call* call) noexcept nogil


ctypedef struct Caller:         # an address that has calls
    Caller* next                # of its bucket
    uint64_t name
    size_t calls
    size_t bytes


ctypedef struct CallQueue:
    # Constant.
    CallDone done
    size_t most_calls
    size_t most_bytes
    # Guarded by mutex (the GIL is never taken while it is held).
    pthread_mutex_t mutex
    pthread_cond_t cond
    Call* head
    Call* tail
    Caller* callers[CALLERS]
    size_t calls                # that are not answered
    size_t bytes                # of their blocks
    bint woken
    bint stopped
    # Statistics, relaxed atomics.
    int64_t taken
    int64_t refused


cdef int calls_init(CallQueue* q, CallDone done, size_t most_calls, size_t most_bytes) noexcept nogil
cdef void calls_free(CallQueue* q) noexcept nogil           # with the calls that nobody took
# A call with copies of its texts, for no queue yet; NULL: no memory.
cdef Call* call_new(const Call* parts) noexcept nogil
cdef void call_free(Call* call) noexcept nogil
cdef void call_free_chain(Call* chain) noexcept nogil
# Any thread: ST_OK; ST_FULL or ST_CLOSED, then the caller keeps the call.
cdef int calls_put(CallQueue* q, Call* call) noexcept nogil
# The answering thread: the oldest call, or NULL once it is woken, stopped, or `until_us` has come.
cdef Call* calls_take(CallQueue* q, int64_t until_us) noexcept nogil
cdef void calls_give(CallQueue* q, Call* call) noexcept nogil       # a call that was taken goes back to its origin
cdef void calls_drop(CallQueue* q, Call* call) noexcept nogil       # a call that was taken, and needs no answer
cdef void calls_tell(CallQueue* q, Call* call) noexcept nogil       # any thread: news, which are taken in any case
cdef void calls_wake(CallQueue* q) noexcept nogil           # any thread: the next take, or the one at hand, returns
cdef void calls_stop(CallQueue* q) noexcept nogil           # any thread: nothing is put any more
