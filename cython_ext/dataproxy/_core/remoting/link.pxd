"""One connection of a client."""

from libc.stdint cimport int32_t, int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.wire.rocketmq.header cimport Command
from dataproxy._core.wire.rocketmq.send cimport SendRequest


cdef inline Slice bytes_slice(bytes data):
    """Return a slice over an object's bytes, which lives as long as it does."""
    return slice_of(<const char*>data, len(data))


cdef class Request:
    cdef int kind               # RequestKind
    cdef str broker             # of a pull: the name that its messages have
    cdef public double _until    # seconds of the monotonic clock


cdef class Link:
    cdef int fd                 # -1: closed
    cdef int32_t last           # number of the last request
    cdef Buf waiting            # frames that nobody writes yet
    cdef Buf leaving            # of the thread with `writing`
    cdef size_t left            # bytes of `leaving` that are written
    cdef bint writing
    cdef bint over              # closed: the descriptor goes when nobody writes
    cdef int error              # errno of the last failure; 0: the peer has ended
    cdef Buf arrived            # of the thread that reads
    cdef size_t done            # bytes of `arrived` that were read
    cdef size_t fresh           # bytes of `arrived` that the last call of the system brought
    cdef object seal            # None, or what lies between frames and the bytes that travel
    cdef Buf scratch
    cdef readonly dict requests  # number -> Request, in the order in which they were made
    cdef readonly int sends     # of the requests, how many are sends
    cdef readonly int64_t sent_bytes    # that the system has taken
    cdef readonly int64_t read_bytes

    cdef Command head(self, int code, int flag)
    cdef int32_t number(self, Request request, int kind)
    cdef size_t unsent_bytes(self) noexcept
    cdef int put(self, Request request, SendRequest* s) except -1
    cpdef Request forget(self, int32_t number)
    cdef int check(self, int status) except -1
    cdef int check_open(self) except -1
    cdef void release(self) noexcept
    cdef bint seal_leaving(self)
    cdef int open_fresh(self) except -1
    cdef int read_some(self) noexcept nogil
    cdef object take(self, Command* command)
