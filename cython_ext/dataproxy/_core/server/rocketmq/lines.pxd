"""A connection as RocketMQ's clients use it: requests both ways, and news of its end."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint64_t

from dataproxy._core.base.address cimport ADDRESS_TEXT
from dataproxy._core.server.calls cimport Call
from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.wire.api cimport Request


cdef enum LineConst:
    # Bytes that a connection may have to read when a request of the hub's comes: what pulls may leave (PULLS_UNSENT),
    # and the largest frame on top of it.
    ORDERS_UNSENT = 33554432


cdef struct Line
cdef struct Wait


cdef struct WaitLink:       # of one of the lists that a wait is in
    Wait* prev
    Wait* next


cdef struct Wait:               # one block: the struct, then the bytes of the request
    WaitLink tick               # of those that end together
    WaitLink peers              # of those for the same bucket
    WaitLink own                # of its connection
    Line* line
    Call* call                  # a request that the thread waits with; NULL: the loop answers it
    uint64_t session
    int64_t due_us
    int64_t arrived             # of its bucket, before the store was looked at
    uint64_t mark               # of what it asks for: group, topic and queue
    int slot                    # of `tick`
    int bucket
    size_t n


cdef struct Line:               # of a session, one block; Session.line
    Call farewell               # first: the block itself becomes the news of the connection's end
    bint known                  # the thread has had a call of it
    int asked                   # requests of the hub's that are not answered
    int waits                   # pulls that wait
    Wait* first_wait
    char peer[ADDRESS_TEXT]


cdef uint64_t line_number(const ServerLoop* d, const Session* s) noexcept nogil     # never given to another connection
cdef Line* line_of(ServerLoop* d, Session* s) noexcept nogil        # made if need be; NULL: no memory
cdef void command_ask(ServerLoop* d, Session* s, const Request* r) noexcept nogil       # let the thread answer it
cdef void command_refuse(
    ServerLoop* d, Session* s, int form, int32_t opaque, int32_t code, const char* words
) noexcept nogil
cdef void line_order(ServerLoop* d, Session* s, Call* call) noexcept nogil      # a request of the hub's own
cdef void line_close(ServerLoop* d, Session* s) noexcept nogil
