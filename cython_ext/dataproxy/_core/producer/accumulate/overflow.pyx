"""What happens when the buffer is full and ``on_full`` says to drop.

``drop_newest`` counts the message as accepted and dropped and keeps nothing of it.  ``drop_oldest`` gives up whole
packs, oldest first, until the message fits; no byte of these packs was ever given to a socket.

A sealed pack is already in some list of its executor, and the sender does not wait for the executor's thread.  The
sender claims the pack (``Pack.claim``) and enters its result in the accounting, which makes the room.  The executor
takes the pack out of its list later.  The executor also claims packs, before it writes or settles them.  So a pack that
was given up is never written, and a pack that is being written is never given up.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from dataproxy._core.pack.pack cimport (
    CL_DROPPED, CL_FREE, OUT_DROPPED, Pack, PackList, PackResult, list_push, list_remove, pack_items,
)
from dataproxy._core.pack.settled cimport settled_mark, settled_tell
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_FULL, ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.state cimport OF_DROP_NEWEST, OF_DROP_OLDEST, Batcher
from dataproxy._core.producer.results.accounting cimport (
    Accounting, accounting_drop, accounting_enter, accounting_hold, accounting_let_go, accounting_refuse,
    accounting_unsent, accounting_wake,
)
from dataproxy._core.producer.ingest.ids cimport ids_next
from dataproxy._core.producer.results.undelivered cimport undelivered_missed
from dataproxy._core.producer.results.refusals cimport refusal, refusals_add
from dataproxy._core.producer.accumulate.streams cimport Stream, streams_forget
from dataproxy._core.producer.accumulate.share cimport unknown_note
from dataproxy._core.net.executor cimport executor_drop
from dataproxy._core.conn.connection cimport LC_DISPLACED, LC_DROPPED
from dataproxy._core.plat.atomic cimport atomic_load, atomic_replace, relaxed_load

cdef enum:
    SHED_SLACK = 4194304


cdef inline bint _fits(const Batcher* b, size_t need, int64_t memory) noexcept nogil:
    return has_room(b, need) and (memory == 0 or memory_fits(b, memory))


cdef bint _enough(Batcher* b, size_t need, int64_t memory) noexcept nogil:
    """Tell whether giving up packs can make enough room; otherwise none is given up.  Locks: both are held."""
    cdef Accounting* k = b.accounting
    cdef int64_t bytes = b.charged + <int64_t>need - atomic_load(&k.released) - b.limit_bytes
    cdef int64_t messages = 0
    cdef int64_t shed = atomic_load(&k.shed_bytes)
    cdef int64_t charges = atomic_load(&k.shed_charge)      # held bodies are not in the memory of packs
    cdef int64_t heap = atomic_load(&b.spares.in_use) - shed + memory - b.spares.most if memory else 0
    cdef Pack* p = accounting_unsent(k, NULL)
    if b.limit_messages:
        messages = b.accepted + 1 - atomic_load(&k.released_messages) - b.limit_messages
    while (bytes > 0 or messages > 0 or heap > 0) and p != NULL:
        bytes -= <int64_t>p.charge
        messages -= p.count
        heap -= relaxed_load(&p.memory)
        shed += relaxed_load(&p.memory)
        charges += <int64_t>p.charge
        p = accounting_unsent(k, p)
    if max(shed, charges) > b.limit_bytes + SHED_SLACK:
        return False                    # the executors have not freed enough packs yet: keeps memory bounded
    p = b.open.head
    while (bytes > 0 or messages > 0 or heap > 0) and p != NULL:
        bytes -= <int64_t>pack_items(p)
        messages -= p.count
        heap -= p.memory
        p = p.next
    return bytes <= 0 and messages <= 0 and heap <= 0


cdef bint _give_up(Batcher* b, PackList* opened, Pack** sealed) noexcept nogil:
    """Give up the oldest pack that can be; False when there is none.  Locks: both are held."""
    cdef Pack* p = accounting_unsent(b.accounting, NULL)
    cdef Pack* young = b.open.head
    if p != NULL and (young == NULL or <int32_t>(p.seq - young.seq) < 0):      # numbered as they were opened
        if atomic_replace(&p.claim, CL_FREE, CL_DROPPED):
            accounting_drop(b.accounting, p, LC_DISPLACED, b.clock.now_us())
            p.dropped_next = NULL
            if sealed[0] == NULL:
                sealed[0] = p
            else:
                sealed[1].dropped_next = p
            sealed[1] = p
        return True                     # its executor has claimed it in the meantime: try the next
    if young == NULL:
        return False
    unknown_note(b, young, 0)
    streams_forget(<Stream*>young.stream, young)
    list_remove(&b.open, young)
    b.open_messages -= young.count
    young.claim = CL_DROPPED
    young.charge = pack_items(young)
    accounting_enter(b.accounting, young)
    accounting_drop(b.accounting, young, LC_DISPLACED, b.clock.now_us())
    settled_mark(young, OUT_DROPPED, LC_DISPLACED)
    list_push(opened, young)
    return True


cdef bint make_room(Batcher* b, size_t need, int64_t memory) noexcept nogil:
    """Give up the oldest unsent packs until a message of ``need`` bytes fits; False when they are not enough.

    ``memory``: bytes of new memory that the message may take, 0 if it goes into an existing pack.
    Locality: any thread.  Locks: the batcher's is held; takes accounting.lock, then the executors' and those that the
    batcher's hook ``settled`` takes.  It waits for no other thread.
    """
    cdef PackList opened
    cdef Pack* sealed[2]        # first and last
    cdef Pack* p
    cdef bint fits = False
    if b.on_full != OF_DROP_OLDEST:
        return False
    memset(&opened, 0, sizeof(PackList))
    sealed[0] = NULL
    sealed[1] = NULL
    accounting_hold(b.accounting)
    if _enough(b, need, memory):
        fits = _fits(b, need, memory)
        while not fits and _give_up(b, &opened, sealed):
            fits = _fits(b, need, memory)
        accounting_wake(b.accounting)
    accounting_let_go(b.accounting)
    while sealed[0] != NULL:
        p = sealed[0]
        sealed[0] = p.dropped_next
        executor_drop(b.executors[p.executor], p)
    settled_tell(&b.settled, &opened)
    return fits


cdef int refuse(
    Batcher* b, Stream* s, int64_t messages, int64_t body_bytes, Slice own_id, PackResult** pack_result,
    uint32_t* index,
) noexcept nogil:
    """Accept and drop messages that do not fit; ST_FULL when ``on_full`` drops nothing, or ST_NO_MEMORY.

    Locality: any thread.  Locks: the batcher's is held; takes completions.lock, then accounting.lock.  With
    ``result`` the caller gets a reference to a final result and the first message's index in it.  ``own_id`` is
    that of a single message.
    """
    cdef char pack_id[32]
    cdef int status = ST_OK
    if b.on_full < OF_DROP_NEWEST:
        return ST_FULL
    if b.report_all:
        status = refusals_add(b.completions, &b.ids, s, messages, own_id, b.clock.now_us(), pack_result, index)
    elif pack_result != NULL:
        ids_next(&b.ids, pack_id)
        pack_result[0] = refusal(pack_id)
        index[0] = 0
        if pack_result[0] == NULL:
            status = ST_NO_MEMORY
    if status == ST_OK:
        b.accepted += messages
        b.accepted_bytes += body_bytes
        undelivered_missed(b.undelivered, messages)
        accounting_refuse(b.accounting, messages, LC_DROPPED)
    return status
