"""The parts of one producer, and the hooks by which they call each other.

Each function says its thread and its locks; no lock is held while the GIL is acquired.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.clock cimport system_clock
from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.pack.pack cimport (
    OUT_DELIVERED, OUT_DROPPED, OUT_FAILED, OUT_MIXED, OUT_SENT, Pack, PackList, list_pop, list_push,
    pack_memory, pack_strip, pool_close, pool_give, pool_open, pool_retire, pool_return, pool_uncount,
)
from dataproxy._core.pack.settled cimport settled_mark, settled_tell
from dataproxy._core.pack.parts cimport parts_messages
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.batcher cimport batcher_abandon, batcher_tick
from dataproxy._core.producer.accumulate.state cimport OF_BLOCK, OF_DROP_OLDEST
from dataproxy._core.producer.results.accounting cimport (
    accounting_close, accounting_hold, accounting_idle, accounting_let_go, accounting_open, accounting_put_away,
    accounting_settle, accounting_turn, accounting_wake,
)
from dataproxy._core.producer.results.completions cimport (
    WATCH_COST, completions_add, completions_close, completions_event, completions_explain, completions_give_back,
    completions_open, completions_poke, completions_put, completions_trouble,
)
from dataproxy._core.plat.atomic cimport relaxed_load
from dataproxy._core.producer.ingest.ids cimport ids_renew, ids_seed
from dataproxy._core.producer.ingest.owners cimport owners_release
from dataproxy._core.producer.results.undelivered cimport undelivered_close, undelivered_keep, undelivered_open
from dataproxy._core.producer.accumulate.groups cimport groups_close
from dataproxy._core.producer.accumulate.keys cimport order_settled
from dataproxy._core.producer.results.packitems cimport pack_keep_ids
from dataproxy._core.producer.accumulate.streams cimport Stream, streams_close, streams_open
from dataproxy._core.producer.accumulate.share cimport UNKNOWN_SHARE
from dataproxy._core.producer.accumulate.unknown cimport unknown_look
from dataproxy._core.net.executor cimport (
    Executor, ExecutorHooks, executor_ask_tick, executor_free, executor_open, executor_retire, executor_seed,
    executor_wake,
)
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.conn.framing cimport FrameRules
from dataproxy._core.conn.connection cimport CE_UNKNOWN_GROUP, LC_CLOSED, ConnectionConfig
from dataproxy._core.plat.thread cimport pthread_mutex_destroy, pthread_mutex_init

cdef enum:
    SLACK = 4194304         # bytes of memory above nine eighths of `buffer_bytes` (docs/decisions/0012-memory.md)


cdef void _give_back(Engine* g, PackList* packs) noexcept nogil:
    cdef Pack* p = list_pop(packs)
    while p != NULL:
        pool_give(&g.spares, p)
        p = list_pop(packs)


cdef void _ask_to_give_back(Engine* g) noexcept nogil:
    """Wake the dispatcher if references to bodies wait and nobody else may come who gives them back.

    A call that sends gives them back, and so does `flush`.  They also wait no longer than there are packs under way,
    and at most an eighth of the buffer's bytes does.  Locality: executor.  Locks: takes accounting.lock, then
    completions.lock, if references wait.
    """
    cdef int64_t wait = relaxed_load(&g.spares.returned_bytes)
    if wait and (wait >= g.batcher.limit_bytes // 8 or accounting_idle(&g.accounting)):
        completions_poke(&g.completions)


cdef void _settled(void* context, PackList* packs) noexcept nogil:
    """Enter results into the accounting, then recycle the packs or put them into the queue for Python.

    Locality: executor; a sender that gives up open packs.  Locks: takes the batcher's if a key queue became idle (never
    for open packs), then accounting.lock, then completions.lock, an inbox's or the pool's.
    """
    cdef Engine* g = <Engine*>context
    cdef PackList reported, spent
    cdef Pack* p
    cdef int64_t now = g.clock.now_us()
    cdef int64_t promised = 0
    memset(&reported, 0, sizeof(PackList))
    memset(&spent, 0, sizeof(PackList))
    p = packs.head
    while p != NULL:
        if p.outcome != OUT_DELIVERED and p.outcome != OUT_SENT and (
                p.outcome != OUT_MIXED or parts_messages(p.parts, OUT_DELIVERED) < p.count):
            completions_explain(&g.completions, p)
            undelivered_keep(&g.undelivered, p, now)
        if p.report and not g.completions.sheds:
            p.waits = pack_memory(0)
            promised += p.waits
        p = p.next
    if promised:
        completions_add(&g.completions, promised)       # before the accounting stops counting these packs as in flight
    if g.batcher.key_buckets:
        order_settled(&g.batcher, packs)
    accounting_hold(&g.accounting)
    p = list_pop(packs)
    while p != NULL:
        if p.outcome == OUT_DROPPED:    # the accounting has its result already
            accounting_put_away(&g.accounting, p)
        else:
            accounting_settle(&g.accounting, p, now)
        p.watched = p.pack_result != NULL and p.pack_result.watched
        if p.watched:
            completions_add(&g.completions, WATCH_COST * p.pack_result.watches)
        if p.report or p.watched:
            list_push(&reported, p)
        else:
            list_push(&spent, p)
        p = list_pop(packs)
    accounting_wake(&g.accounting)
    accounting_let_go(&g.accounting)
    if completions_give_back(&g.completions, &spent):
        executor_ask_tick(g.executors[0])       # this thread may hold the batcher's lock
        executor_wake(g.executors[0])
    p = reported.head
    while p != NULL:
        if p.report and p.own_ids and p.buf != NULL:
            pack_keep_ids(p)
        else:
            pack_strip(p)       # the dispatcher may be slow: its queue keeps no buffers
        pool_uncount(&g.spares, p)
        pool_return(&g.spares, p)
        p = p.next
    accounting_turn(&g.accounting)
    if reported.head != NULL:
        completions_put(&g.completions, &reported)
    _ask_to_give_back(g)


cdef int64_t _tick(void* context, int64_t now) noexcept nogil:
    return batcher_tick(&(<Engine*>context).batcher, now)


cdef void _event(void* context, int kind, const char* label, int detail, Slice text) noexcept nogil:
    cdef Engine* g = <Engine*>context
    completions_trouble(&g.completions, kind, label, detail, text, g.clock.now_us())
    completions_event(&g.completions, kind, label, detail, text)


cdef void _unknown(void* context, void* stream, const char* label, int code) noexcept nogil:
    """Bound what a stream may hold that servers do not know, or end that; the first is told.

    Locality: executor.  Locks: takes the batcher's, then accounting.lock and an inbox's; completions.lock.
    """
    cdef Engine* g = <Engine*>context
    cdef Stream* s = <Stream*>stream
    unknown_look(&g.batcher, s)
    if label != NULL:
        completions_event(&g.completions, CE_UNKNOWN_GROUP, label, code, s.group)


cdef void _fill_hooks(Engine* g, ExecutorHooks* hooks) noexcept nogil:
    """Name the functions that executors call.  Locality: the producer's creator."""
    hooks.context = g
    hooks.settled = g.batcher.settled
    hooks.tick = _tick
    hooks.event = _event
    hooks.unknown = _unknown
    hooks.unknown_bytes = &g.batcher.unknown_bytes
    hooks.unknown_most = g.batcher.limit_bytes // UNKNOWN_SHARE


cdef int engine_open(
    Engine* g, const WireOps* wire, int executors, const ConnectionConfig* connections, const FrameRules* rules,
    int64_t undelivered_bytes, bint nagle, int64_t busy_poll_us, TlsHolder* tls,
) noexcept nogil:
    """Make a stopped engine; the batcher's settings were filled in before.  ``tls``: NULL for plain connections.

    Locality: the producer's creator.  Locks: none.  ST_OK, ST_NO_MEMORY or ST_SYSTEM; after a failure
    ``engine_free`` releases what was made.
    """
    cdef ExecutorHooks hooks
    cdef int i, status
    cdef int64_t offset, slack
    g.clock = system_clock()
    g.generation = this_generation
    offset = g.clock.wall_ms() - g.clock.now_us() // 1000
    pthread_mutex_init(&g.batcher.lock, NULL)
    slack = g.batcher.limit_bytes // 8 + SLACK
    g.batcher.spare_room = slack // 2
    pool_open(&g.spares, <size_t>g.batcher.limit_bytes, g.batcher.limit_bytes + slack)
    g.spares.spread = <int64_t>wire.spread
    accounting_open(&g.accounting)
    g.accounting.busy_poll_us = busy_poll_us
    undelivered_open(&g.undelivered, undelivered_bytes, wire)
    g.batcher.accounting = &g.accounting
    g.batcher.completions = &g.completions
    g.batcher.undelivered = &g.undelivered
    g.batcher.settled.context = g
    g.batcher.settled.take = _settled
    g.batcher.spares = &g.spares
    g.batcher.wire = wire
    g.batcher.clock = g.clock
    g.batcher.least_room = g.batcher.max_frame
    g.batcher.least_body = g.batcher.max_frame
    g.batcher.next_seq = <uint32_t>g.clock.now_us()
    ids_renew(&g.batcher.ids)
    status = completions_open(&g.completions, &g.spares, &g.batcher.streams, slack, g.batcher.on_full != OF_BLOCK)
    if status != ST_OK or streams_open(&g.batcher.streams) != ST_OK:
        return ST_NO_MEMORY
    _fill_hooks(g, &hooks)
    g.executors = <Executor**>calloc(<size_t>executors, sizeof(Executor*))
    if g.executors == NULL:
        return ST_NO_MEMORY
    g.batcher.executors = g.executors
    for i in range(executors):
        g.executors[i] = <Executor*>calloc(1, sizeof(Executor))
        if g.executors[i] == NULL:
            return ST_NO_MEMORY
        status = executor_open(
            g.executors[i], i, g.batcher.wire, connections, rules, &g.spares, &hooks,
            g.batcher.on_full == OF_DROP_OLDEST,
            nagle, offset, tls)
        if status != ST_OK:
            free(g.executors[i])
            return status
        executor_seed(g.executors[i], ids_seed())
        g.executors[i].busy_poll_us = busy_poll_us
        g.n_executors = i + 1
    g.batcher.n_executors = executors
    return ST_OK


cdef void engine_abandon_open(Engine* g) noexcept nogil:
    """Close the batcher; messages that were never sealed fail with LC_CLOSED.

    Locality: any thread.  Locks: batcher.lock, then accounting.lock, then completions.lock.
    """
    cdef PackList packs
    cdef Pack* p
    memset(&packs, 0, sizeof(PackList))
    batcher_abandon(&g.batcher, &packs)
    p = packs.head
    while p != NULL:
        settled_mark(p, OUT_FAILED, LC_CLOSED)
        p = p.next
    settled_tell(&g.batcher.settled, &packs)


cdef void engine_retire(Engine* g) noexcept nogil:
    """Give back descriptors and spare buffers; results and counts can still be read.

    Locality: the thread that joined the engine's threads.  Locks: takes the pool's.
    """
    cdef int i
    for i in range(g.n_executors):
        executor_retire(g.executors[i])
    pool_retire(&g.spares)


cdef void engine_free(Engine* g) noexcept nogil:
    """Release everything; all threads have ended.  Locality: the last user."""
    cdef int i
    for i in range(g.n_executors):
        executor_free(g.executors[i])
        free(g.executors[i])
    free(g.executors)
    _give_back(g, &g.batcher.open)
    _give_back(g, &g.completions.owed)
    _give_back(g, &g.completions.packs)
    completions_close(&g.completions)
    with gil:
        owners_release(&g.spares)
    undelivered_close(&g.undelivered)
    streams_close(&g.batcher.streams)
    groups_close(&g.batcher.groups)
    accounting_close(&g.accounting)
    pool_close(&g.spares)
    pthread_mutex_destroy(&g.batcher.lock)
