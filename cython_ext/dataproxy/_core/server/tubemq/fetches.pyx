"""GET: each request is answered with a pack, waits for one, or is told that there is none.

A request with a confirm goes to the store first, where offsets are kept, and reads on once the position is there.  One
that finds nothing waits, for TubeBroker.wait_us at most, and is answered as soon as its partition has an entry.

Locality: server loop.  Locks: takes the mutex of the registrations, and those that the store's visitor takes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strlen

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_add
from dataproxy._core.plat.clock cimport wall_ms
from dataproxy._core.server.arrivals cimport bucket_of
from dataproxy._core.server.entries cimport ENTRY_FETCH
from dataproxy._core.server.holders cimport HOLDS_ANSWERS
from dataproxy._core.server.session cimport CLOSE_MEMORY, session_unsent, table_find
from dataproxy._core.server.state cimport count_code, end_session, mark_dirty
from dataproxy._core.server.store.env cimport FAULT_CHECKSUM
from dataproxy._core.server.store.visits cimport Visit
from dataproxy._core.server.tubemq.broker cimport (
    CODE_LIMITED, CODE_NOTHING, Claim, Confirmed, TubeBroker, broker_confirm, code_text,
)
from dataproxy._core.server.tubemq.confirms cimport confirm_store
from dataproxy._core.server.tubemq.packs cimport PackCall, pack_read, packs_free, packs_init
from dataproxy._core.server.tubemq.registrations cimport REG_OK, Standing
from dataproxy._core.server.tubemq.waits cimport (
    Polls, Wait, polls_begin, polls_forget, polls_note, wait_add, wait_drop, wait_renew, wait_request, waits_end,
    waits_follow, waits_forget, waits_free,
)
from dataproxy._core.wire.tubemq.answers cimport add_answer
from dataproxy._core.wire.tubemq.const cimport METHOD_GET, UNKNOWN
from dataproxy._core.wire.tubemq.get cimport GetRequest, Got, got_size, put_got, read_get

cdef enum:
    CODE_BROKEN = 400
    CODE_DAMAGED = 500
    CODE_UNREAD = 503
    TEXT_MOST = 256             # bytes of an answer without messages


cdef Fetches* _fetches(ServerLoop* d) noexcept nogil:
    """Return the loop's desk, made if need be; NULL: no memory."""
    cdef Fetches* f = <Fetches*>d.fetches
    if f == NULL:
        f = <Fetches*>calloc(1, sizeof(Fetches))
        if f == NULL:
            return NULL
        packs_init(&f.reader)
        d.fetches = <void*>f
    return f


cdef void fetches_free(ServerLoop* d) noexcept nogil:
    """Release the desk and what waits there."""
    cdef Fetches* f = <Fetches*>d.fetches
    if f == NULL:
        return
    waits_free(&f.waits)
    packs_free(&f.reader)
    free(f)
    d.fetches = NULL


cdef void fetch_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Answer a request for messages, or begin what it waits for."""
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    cdef GetRequest asked
    cdef Confirmed found
    cdef Claim c
    memset(&asked, 0, sizeof(GetRequest))
    if read_get(r.call, &asked) != ST_OK:
        _refuse(d, s, r.serial, CODE_BROKEN, b"the request cannot be read")
        return
    if not asked.manual:
        c.client, c.group, c.topic, c.partition = asked.client, asked.group, asked.topic, asked.partition
        broker_confirm(b, &c, asked.consumed, d.now_us, &found)
        if found.code != REG_OK:
            _refuse(d, s, r.serial, found.code, code_text(found.code))
            return
        relaxed_add(&b.confirms, found.moved)
        # Behind a confirm that is not stored, too: clients expect the answer to that first.
        if b.keeps and (found.unkept or s.confirms > 0):
            confirm_store(d, s, &c, &found, ENTRY_FETCH, r.serial, r.call)
            return
    _fetch(d, s, r.serial, r.call, NULL, NULL)


cdef void fetch_settled(ServerLoop* d, Session* s, Entry* entry) noexcept nogil:
    """Go on with a request whose confirm is stored."""
    cdef Standing since
    if entry.status != ST_OK:
        _refuse(d, s, entry.serial, CODE_UNREAD, b"the store could not keep the position")
        return
    since.version, since.pending = entry.version, 0
    _fetch(d, s, entry.serial, entry.reply, &since, NULL)


cdef bint _fetch(
    ServerLoop* d, Session* s, uint32_t serial, Slice request, const Standing* since, Wait* waited
) noexcept nogil:
    """Answer with messages, or that there are none, or wait; tell whether ``waited`` goes on waiting.

    ``since``: the request has waited, for messages (``waited``) or for the store (NULL).
    """
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    cdef Fetches* f = _fetches(d)
    cdef GetRequest asked
    cdef PackCall x
    cdef Wait parts
    cdef size_t before = s.output.n
    cdef int status
    memset(&asked, 0, sizeof(GetRequest))
    memset(&parts, 0, sizeof(Wait))
    memset(&x, 0, sizeof(PackCall))
    if f == NULL or (s.polls == NULL and not polls_begin(s)) or read_get(request, &asked) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return False
    parts.serial = serial
    parts.bucket = bucket_of(asked.topic, <uint32_t>asked.partition)
    parts.arrived = atomic_load(&b.news.arrived[parts.bucket])
    if _is_full(d, f, s):   # no more than the peer takes; it asks again
        _refuse(d, s, serial, CODE_NOTHING, b"the answers before have to be read first")
        return False
    x.asked, x.serial, x.since, x.out = &asked, serial, since, &s.output
    x.now_us, x.wall_ms = d.now_us, wall_ms()
    status = pack_read(b, &f.reader, &x)
    if status != ST_OK:
        if x.code == CODE_LIMITED:
            polls_forget(<Polls*>s.polls, parts.bucket)
        _fail(d, s, f, &x, status)
        return False
    polls_note(d, <Polls*>s.polls, parts.bucket, x.more)
    if x.n > 0:
        f.made += s.output.n - before
        relaxed_add(&d.counters.replies, 1)
        mark_dirty(d, s)
        return False
    parts.standing = x.now
    if waited != NULL:
        if wait_renew(d, &f.waits, s, waited, &x.now, parts.arrived):
            return True
    elif wait_add(d, &f.waits, s, &parts, request):
        return False
    _nothing(d, s, serial)
    return False


cdef bint _is_full(const ServerLoop* d, const Fetches* f, const Session* s) noexcept nogil:
    """Tell whether a connection, or all of the loop's together, have too many answers to send."""
    cdef int64_t most = d.shared.held_bytes // 2
    cdef size_t unsent = session_unsent(s)
    # Who reads all that it gets is not made to wait by those who do not.
    return (unsent > PACKS_UNSENT or <int64_t>f.made > most
            or (unsent > 0 and d.holders.bytes[<int>HOLDS_ANSWERS] + <int64_t>f.made > most))


# ---- Answers without messages.


cdef void _fail(ServerLoop* d, Session* s, const Fetches* f, const PackCall* x, int status) noexcept nogil:
    """Answer why there is no pack."""
    cdef const Visit* v = &f.reader.visit
    if status == ST_NO_MEMORY:
        end_session(d, s, CLOSE_MEMORY)
    elif status == ST_CLOSED and x.code == CODE_NOTHING:
        _nothing(d, s, x.serial)
    elif status == ST_CLOSED:
        _refuse(d, s, x.serial, x.code, code_text(x.code), x.wait_ms)
    elif status == ST_LIMIT:
        _refuse(d, s, x.serial, CODE_DAMAGED,
                b"a message is larger than any client reads; set the group's offset behind it")
    elif v.error == FAULT_CHECKSUM:
        _refuse(d, s, x.serial, CODE_DAMAGED,
                b"the next entry is not what was stored; set the group's offset behind it")
    else:
        _refuse(d, s, x.serial, CODE_UNREAD, b"the store cannot be read now")


cdef void _nothing(ServerLoop* d, Session* s, uint32_t serial) noexcept nogil:
    _refuse(d, s, serial, CODE_NOTHING, b"Response is null for that there is no new message")


cdef void _refuse(
    ServerLoop* d, Session* s, uint32_t serial, int code, const char* text, int32_t wait_ms=0
) noexcept nogil:
    """Answer without messages; ``wait_ms``: the client is to ask again no sooner."""
    cdef uint8_t made[TEXT_MOST]
    cdef Got g
    memset(&g, 0, sizeof(Got))
    g.code = code
    g.text = slice_of(text, strlen(text))
    g.offset = g.backlog = UNKNOWN
    g.wait_ms = wait_ms
    put_got(made, &g, NULL, 0)
    if code != CODE_NOTHING:
        count_code(d, code)
    if add_answer(&s.output, serial, METHOD_GET, slice_of(made, got_size(&g, NULL, 0))) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return
    relaxed_add(&d.counters.replies, 1)
    mark_dirty(d, s)


# ---- Requests that wait.


cdef void _end_wait(ServerLoop* d, Wait* w, bint again) noexcept nogil:
    """Answer a request that has waited: with what is there now (it may go on waiting), or that there is nothing."""
    cdef Fetches* f = <Fetches*>d.fetches
    cdef Session* s = table_find(&d.table, w.session)
    cdef Standing since = w.standing
    if s != NULL and again:
        if _fetch(d, s, w.serial, wait_request(w), &since, w):
            return
    elif s != NULL:
        _nothing(d, s, w.serial)
    wait_drop(d, &f.waits, w)


cdef void fetches_follow(ServerLoop* d) noexcept nogil:
    """Answer requests whose partitions have got entries, that have waited for long enough, or that are in the way."""
    cdef Fetches* f = <Fetches*>d.fetches
    cdef Session* s = d.graves
    if f == NULL:
        return
    while s != NULL:        # closed in this round
        fetches_forget(d, s)
        s = s.grave_next
    waits_follow(d, &f.waits, _end_wait)
    f.made = 0      # what was made is sent now, and counted with its connection


cdef void fetches_end(ServerLoop* d) noexcept nogil:
    """Answer all that wait."""
    cdef Fetches* f = <Fetches*>d.fetches
    if f != NULL:
        waits_end(d, &f.waits, _end_wait)


cdef void fetches_forget(ServerLoop* d, Session* s) noexcept nogil:
    """Release what a closed connection waits for."""
    cdef Fetches* f = <Fetches*>d.fetches
    if f != NULL:
        waits_forget(d, &f.waits, s)
