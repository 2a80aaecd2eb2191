"""COMMIT: what a consumer confirms is answered once it is on disk.

Locality: server loop.  Locks: takes the mutex of the registrations.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset, strlen

from dataproxy._core.base.buf cimport Buf, buf_put_slice
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_OK
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.server.entries cimport ENTRY_CONFIRM, entry_footprint
from dataproxy._core.server.session cimport CLOSE_MEMORY
from dataproxy._core.server.state cimport count_code, end_session, mark_dirty
from dataproxy._core.server.store.visits cimport Visit, visit_free, visit_init
from dataproxy._core.server.tubemq.broker cimport TubeBroker, broker_confirm, broker_entry, code_text
from dataproxy._core.server.tubemq.registrations cimport INDEX_BYTES, REG_NO_OWNER, REG_OK
from dataproxy._core.wire.tubemq.answers cimport add_answer
from dataproxy._core.wire.tubemq.commit cimport CommitRequest, Committed, committed_size, put_committed, read_commit
from dataproxy._core.wire.tubemq.const cimport METHOD_COMMIT

cdef enum:
    CODE_BROKEN = 400
    CODE_UNSTORED = 503
    TEXT_MOST = 256             # bytes of an answer, at most


cdef int _put(Buf* out, unsigned int serial, int code, const char* text, int64_t position, int64_t end) noexcept nogil:
    """Append a frame with the answer to a confirm."""
    cdef uint8_t made[TEXT_MOST]
    cdef Committed answer
    memset(&answer, 0, sizeof(Committed))
    answer.success = code == REG_OK
    answer.code = code
    answer.text = slice_of(text, strlen(text))
    answer.offset = position
    answer.max_offset = end
    put_committed(made, &answer)
    return add_answer(out, serial, METHOD_COMMIT, slice_of(made, committed_size(&answer)))


cdef int _see_end(void* context) noexcept nogil:
    return ST_CLOSED


cdef int64_t _end_of(TubeBroker* b, const Claim* c) noexcept nogil:
    """Return the offset that the next message of a partition gets."""
    cdef Visit v
    visit_init(&v)
    v.topic = c.topic
    v.partition = <unsigned int>c.partition
    v.place = _see_end
    b.visit(b.store, &v)
    visit_free(&v)
    return <int64_t>v.next * INDEX_BYTES


cdef void confirm_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Confirm what a consumer has read last, or let it be read again."""
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    cdef Buf* out = &d.request.reply
    cdef CommitRequest asked
    cdef Confirmed found
    cdef Claim c
    cdef int status
    out.n = 0
    memset(&asked, 0, sizeof(CommitRequest))
    if read_commit(r.call, &asked) != ST_OK:
        count_code(d, CODE_BROKEN)
        status = _put(out, r.serial, CODE_BROKEN, b"the request cannot be read", -1, -1)
        _answer(d, s, out, status)
        return
    c.client, c.group, c.topic, c.partition = asked.client, asked.group, asked.topic, asked.partition
    broker_confirm(b, &c, asked.consumed, d.now_us, &found)
    if found.code != REG_OK:
        count_code(d, REG_NO_OWNER)
        status = _put(out, r.serial, REG_NO_OWNER, code_text(REG_NO_OWNER), -1, -1)
        _answer(d, s, out, status)
        return
    relaxed_add(&b.confirms, 1)
    status = _put(out, r.serial, REG_OK, b"OK!", found.position, _end_of(b, &c))
    if status == ST_OK and found.unkept and b.keeps:
        confirm_store(d, s, &c, &found, ENTRY_CONFIRM, r.serial, slice_of(out.p, out.n))
    else:
        _answer(d, s, out, status)


cdef void _answer(ServerLoop* d, Session* s, const Buf* out, int status) noexcept nogil:
    if status != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return
    _give(d, s, slice_of(out.p, out.n))


cdef void _give(ServerLoop* d, Session* s, Slice frame) noexcept nogil:
    if buf_put_slice(&s.output, frame) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return
    relaxed_add(&d.counters.replies, 1)
    mark_dirty(d, s)


cdef void confirm_store(
    ServerLoop* d, Session* s, const Claim* c, const Confirmed* what, int kind, unsigned int serial, Slice rest
) noexcept nogil:
    """Append a position to this round's chain."""
    cdef Entry* entry = broker_entry(c, what, rest)
    if entry == NULL:
        end_session(d, s, CLOSE_MEMORY)
        return
    entry.kind = kind
    entry.origin = <void*>d
    entry.session = s.id
    entry.serial = serial
    if d.chain == NULL:
        d.chain = entry
    else:
        d.chain_last.next = entry
    d.chain_last = entry
    s.owed_bytes += entry.reply.n
    s.pending += 1
    s.confirms += 1
    d.outstanding += 1
    relaxed_store(&d.queued_bytes, relaxed_load(&d.queued_bytes) + <int64_t>entry_footprint(entry))


cdef void confirm_settled(ServerLoop* d, Session* s, Entry* entry) noexcept nogil:
    """Answer a confirm whose position is stored, or could not be: then it counts until the hub ends, and is stored
    with the next one."""
    cdef Buf* out = &d.request.reply
    if entry.status == ST_OK:
        _give(d, s, entry.reply)
        return
    out.n = 0
    _answer(d, s, out, _put(out, entry.serial, CODE_UNSTORED, b"the store could not keep the position", -1, -1))
