"""Simulated connections: transports whose bytes go where a simulator takes them."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.clock cimport Clock
from dataproxy._core.net.transport cimport Transport, TransportOps


cdef enum PipeState:
    PIPE_NEW = 0
    PIPE_UP = 1
    PIPE_FAILED = 2


ctypedef struct End:        # one side of a pipe; Transport.state points to it
    Pipe* pipe
    Buf out                 # written here, not yet taken by the network: the socket's send buffer
    Buf inn                 # brought by the network, not yet read
    size_t start            # first unread byte of inn
    int64_t room            # bytes that may be written before the socket is full
    int64_t transit         # bytes on their way to this side
    bint noted              # the simulator knows that it is closed
    bint closed             # this side closed its socket
    bint fin                # the peer's end of stream was brought
    int broken              # errno that every call gives from now on


ctypedef struct Pipe:
    int state               # PipeState
    int error               # errno of a failed connect
    int port                # that the client asked for
    int64_t window          # bytes that may be on their way or unread, each way
    int64_t buffer          # bytes that a socket holds until the other side's host has them, each way
    bint dead               # closed on both sides, and noted
    End ends[2]             # client, server


cdef const TransportOps* sim_transport() noexcept nogil
cdef const Clock* sim_clock() noexcept nogil
cdef int sim_adopt(Transport* t, Pipe* pipe) except -1
cdef bint end_readable(const End* end) noexcept nogil
cdef bint end_writable(const End* end) noexcept nogil


cdef class Net:
    cdef Pipe** pipes
    cdef int n
    cdef int cap
    cdef int first          # every connection before it is dead

    cdef int join(self, Pipe* pipe) except -1
    cdef void open_window(self, Pipe* p, int side)
    cdef Pipe* pipe(self, int index) except NULL
