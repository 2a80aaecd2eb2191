"""A connection makes frames of calls, and finds the call of each answer by its serial number.

A call whose time is over ends its connection: servers work off a connection in order, so what is behind it would wait,
too, and a server drops a request that is late without a word.  As long as a frame is arriving, its bytes give all calls
more time, up to a limit: behind a slow network a large pack takes longer than a call may wait for its first byte.  So
does an answer to the calls behind it, whose answers come over the same network; a call that an answer has overtaken
gets no more.

Locality: owner.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.blocks cimport block_alloc, block_free
from dataproxy._core.base.buf cimport buf_free, buf_reserve
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.wire.tubemq.const cimport PAYLOAD_MOST, PROTOCOL_VERSION
from dataproxy._core.wire.tubemq.frame cimport (
    FrameScan, cut_frame, frame_heads, gather_frame, join_frame, scan_frame,
)
from dataproxy._core.wire.tubemq.rpc cimport Answer, Call, call_size, put_call, read_answer

cdef enum:
    FIRST_WAIT_US = 100000      # before packs are asked for again; doubled with each fault
    LAST_WAIT_US = 5000000
    FAULTS_MOST = 16
    PATIENCE = 10               # times the limit of a call, as long as bytes come


cdef void connection_open(Connection* conn, CallEnd end, void* context) noexcept nogil:
    """Make a connection without calls; its addresses are filled by the caller."""
    conn.state = CS_CLOSED
    conn.end = end
    conn.context = context


cdef void connection_free(Connection* conn) noexcept nogil:
    """Release everything; calls without an end get none."""
    cdef PendingCall* call = conn.first
    cdef PendingCall* following
    while call != NULL:
        following = call.next
        free(call)
        call = following
    conn.first = conn.last = NULL
    buf_free(&conn.out)


cdef uint8_t* connection_call(
    Connection* conn, int kind, int64_t number, int32_t service, int32_t method, size_t n, int64_t now_us,
    int64_t timeout_us,
) noexcept nogil:
    """Begin a call; its frame is the last one of ``out`` once its request is written."""
    cdef Call head
    cdef PendingCall* call
    cdef size_t payload, heads
    memset(&head, 0, sizeof(Call))
    head.service, head.version, head.method = service, PROTOCOL_VERSION, method
    head.timeout_ms = timeout_us // 1000
    payload = call_size(&head, n)
    heads = frame_heads(payload)
    call = <PendingCall*>calloc(1, sizeof(PendingCall))
    if call == NULL or buf_reserve(&conn.out, heads + payload) != ST_OK:
        free(call)
        return NULL
    conn.serial += 1
    call.serial, call.kind, call.number = conn.serial, kind, number
    call.deadline_us, call.timeout_us = now_us + timeout_us, timeout_us
    if conn.last == NULL:
        conn.first = call
    else:
        conn.last.next = call
    conn.last = call
    if conn.state == CS_CLOSED:
        conn.state = CS_WANTED
    conn.cut_at, conn.cut_payload = conn.out.p + conn.out.n, payload
    conn.out.n += heads + payload
    return put_call(conn.cut_at + heads, &head, n)


cdef void connection_written(Connection* conn) noexcept nogil:
    """End the frame that ``connection_call`` began."""
    cut_frame(conn.cut_at, conn.serial, conn.cut_payload)


cdef void connection_connected(Connection* conn) noexcept nogil:
    """Begin to write."""
    conn.state = CS_OPEN
    conn.arriving = False
    memset(&conn.scan, 0, sizeof(FrameScan))


cdef PendingCall* _take_call(Connection* conn, uint32_t serial) noexcept nogil:
    """Take a call out of the list, by its number; NULL: there is none."""
    cdef PendingCall* before = NULL
    cdef PendingCall* call = conn.first
    while call != NULL and call.serial != serial:
        before = call
        call = call.next
    if call == NULL:
        return NULL
    if before == NULL:
        conn.first = call.next
    else:
        before.next = call.next
    if conn.last == call:
        conn.last = before
    return call


cdef Slice _payload(Connection* conn, uint8_t* frame) noexcept nogil:
    """Return the payload of a whole frame: one with packs or much else in a block of its own, which can be kept."""
    cdef const PendingCall* call = conn.first
    while call != NULL and call.serial != conn.scan.serial:
        call = call.next
    if call != NULL and (call.kind == CK_GET or conn.scan.slices > 1):
        conn.block = block_alloc(conn.scan.payload)
    if conn.block == NULL:
        return join_frame(frame, &conn.scan)
    return gather_frame(frame, &conn.scan, conn.block)


cdef void _free_block(Connection* conn) noexcept nogil:
    block_free(conn.block)
    conn.block = NULL


cdef int connection_take(Connection* conn, uint8_t* p, size_t n, int64_t now_us, size_t* used) noexcept nogil:
    """Take bytes from the peer, which may be changed; ``used``: of whole frames.  ST_OK or ST_PROTOCOL."""
    cdef Answer answer
    cdef PendingCall* call
    cdef int status
    used[0] = 0
    conn.heard_us = now_us
    while True:
        status = scan_frame(&conn.scan, p + used[0], n - used[0], PAYLOAD_MOST)
        if status == ST_NEED_DATA:
            conn.arriving = used[0] < n
            return ST_OK
        if status != ST_OK:
            return ST_PROTOCOL
        if read_answer(_payload(conn, p + used[0]), &answer) != ST_OK:
            _free_block(conn)
            return ST_PROTOCOL
        used[0] += conn.scan.at
        call = _take_call(conn, conn.scan.serial)
        memset(&conn.scan, 0, sizeof(FrameScan))
        if call == NULL:
            continue                # of a call that nobody made here: as any client, it is passed over
        conn.faults = 0
        conn.answered, conn.answered_us = call.serial, now_us
        conn.end(conn.context, conn, call, &answer, CF_NONE, 0)
        _free_block(conn)
        free(call)


cdef void connection_lost(Connection* conn, int fault, int detail, int64_t now_us) noexcept nogil:
    """End all calls with a fault: the connection is closed, or will be by the owner."""
    cdef PendingCall* call = conn.first
    cdef PendingCall* following
    cdef int64_t wait = FIRST_WAIT_US << min(conn.faults, 6)
    conn.state = CS_CLOSED
    conn.first = conn.last = NULL
    conn.out.n = conn.out_at = 0
    conn.faults = min(conn.faults + 1, <int>FAULTS_MOST)
    conn.again_us = now_us + min(wait, <int64_t>LAST_WAIT_US)
    while call != NULL:
        following = call.next
        conn.end(conn.context, conn, call, NULL, fault, detail)
        free(call)
        call = following


cdef int64_t _limit(const Connection* conn, const PendingCall* call) noexcept nogil:
    """Return when a call is too late."""
    cdef int64_t heard_us, more
    if conn.arriving:
        heard_us = conn.heard_us
    elif <int32_t>(call.serial - conn.answered) > 0:    # it is behind the newest answer
        heard_us = conn.answered_us
    else:
        return call.deadline_us
    more = min(heard_us + call.timeout_us, call.deadline_us + (PATIENCE - 1) * call.timeout_us)
    return max(call.deadline_us, more)


cdef int64_t connection_due(const Connection* conn) noexcept nogil:
    """Return when the first call, or the connect, is too late; -1: there is none."""
    cdef int64_t due = -1, limit
    cdef const PendingCall* call = conn.first
    while call != NULL:             # calls have different limits
        limit = _limit(conn, call)
        if due < 0 or limit < due:
            due = limit
        call = call.next
    if conn.state == CS_CONNECTING and (due < 0 or conn.connect_until_us < due):
        due = conn.connect_until_us
    return due
