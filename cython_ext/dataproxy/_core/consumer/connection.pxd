"""One connection to a master or a broker: calls in, bytes out; bytes in, answers out.  No socket is in here."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from dataproxy._core.base.address cimport Address
from dataproxy._core.base.buf cimport Buf
from dataproxy._core.wire.tubemq.frame cimport FrameScan
from dataproxy._core.wire.tubemq.rpc cimport Answer


cdef enum ConnectionState:
    CS_CLOSED = 0
    CS_WANTED = 1           # there are calls to make: the owner connects
    CS_CONNECTING = 2
    CS_OPEN = 3


cdef enum CallKind:
    CK_CONTROL = 0          # of the thread that drives the member; `number` is its own
    CK_GET = 1              # `number` is the hold's
    CK_COMMIT = 2


cdef enum CallFault:        # why a call has no answer
    CF_NONE = 0
    CF_CONNECT = 1          # no connection could be made; detail: errno, or one of TlsFault
    CF_LOST = 2             # the connection ended; detail: errno, 0: the peer closed it
    CF_TIMEOUT = 3
    CF_PROTOCOL = 4         # the peer sent no frame, or one over the limit
    CF_CLOSED = 5           # this side ends
    CF_MEMORY = 6


ctypedef struct PendingCall:   # written, or waiting to be written
    PendingCall* next
    uint32_t serial
    int kind
    int64_t number
    int64_t deadline_us
    int64_t timeout_us


ctypedef struct Connection


# The end of a call: with an answer, whose bytes are valid until this returns, or with a fault and its detail.
ctypedef void (*CallEnd)(
    void* context, Connection* conn, const PendingCall* call, const Answer* answer, int fault, int detail,
) noexcept nogil


ctypedef struct Connection:       # its owner's thread alone
    Address peer            # constant, as label and name
    int family
    char label[64]
    char name[256]          # of the host, as the user knows it, for TLS
    int state
    Buf out
    size_t out_at           # bytes of `out` that were written
    int64_t heard_us        # when bytes came last
    bint arriving           # they ended within a frame
    uint32_t answered       # serial of the call whose answer came last
    int64_t answered_us     # when that was
    PendingCall* first         # by serials
    PendingCall* last
    FrameScan scan
    uint32_t serial         # of the newest call
    int64_t connect_until_us
    int faults              # in a row, without an answer
    int64_t again_us        # until then no packs are asked for
    uint8_t* cut_at         # the frame that is being written
    size_t cut_payload
    uint8_t* block          # that the answer lies in which is told; who takes it sets this to NULL.  NULL: none
    CallEnd end             # constant
    void* context


cdef void connection_open(Connection* conn, CallEnd end, void* context) noexcept nogil
cdef void connection_free(Connection* conn) noexcept nogil
# Begin a call: room for the `n` bytes of its request, which the caller writes before it calls `connection_written`.
# NULL without memory.
cdef uint8_t* connection_call(
    Connection* conn, int kind, int64_t number, int32_t service, int32_t method, size_t n, int64_t now_us,
    int64_t timeout_us,
) noexcept nogil
cdef void connection_written(Connection* conn) noexcept nogil
cdef void connection_connected(Connection* conn) noexcept nogil
cdef int connection_take(Connection* conn, uint8_t* p, size_t n, int64_t now_us, size_t* used) noexcept nogil
cdef void connection_lost(Connection* conn, int fault, int detail, int64_t now_us) noexcept nogil
cdef int64_t connection_due(const Connection* conn) noexcept nogil
