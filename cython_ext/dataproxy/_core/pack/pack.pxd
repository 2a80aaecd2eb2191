"""A pack: many messages in one frame, from the first append to the final result.

A sealed pack holds everything about itself: frame bytes, sequence number, data time, deadline and attempts.
Exactly one owner holds it at a time: an open stream, an inbox, a connection pool, a completion queue.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from dataproxy._core.pack.held cimport Held
from dataproxy._core.pack.parts cimport Parts
from dataproxy._core.pack.unknown cimport Unknown
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.timers cimport Timer
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.thread cimport pthread_mutex_t


cdef enum PackState:
    PK_OPEN = 0         # bodies are still appended (client)
    PK_POSTED = 1       # in an executor's inbox
    PK_WAITING = 2      # no connection can take it yet
    PK_QUEUED = 3       # in the send queue of `conn`
    PK_IN_FLIGHT = 4    # written to `conn`, not answered
    PK_BACKOFF = 5      # waits for its next attempt
    PK_SETTLED = 6      # its result is final
    PK_HELD = 7         # waits for the result of its predecessor in its key queue
    PK_TAKEN = 8        # in no list: its executor is deciding where it goes


cdef enum:              # legal state changes: the states that may follow, as bits; `pack_enter` is the only writer
    AFTER_OPEN = (1 << PK_POSTED) | (1 << PK_SETTLED)       # sealed; given up by a sender
    AFTER_POSTED = 1 << PK_TAKEN
    AFTER_WAITING = 1 << PK_TAKEN
    AFTER_QUEUED = (1 << PK_TAKEN) | (1 << PK_IN_FLIGHT)    # taken back; written
    AFTER_IN_FLIGHT = 1 << PK_TAKEN                         # answered, late, or its connection is gone
    AFTER_BACKOFF = 1 << PK_TAKEN
    AFTER_SETTLED = 0                                       # final
    AFTER_HELD = 1 << PK_TAKEN
    AFTER_TAKEN = (1 << PK_WAITING) | (1 << PK_QUEUED) | (1 << PK_BACKOFF) | (1 << PK_HELD) | (1 << PK_SETTLED)


cdef enum Outcome:
    OUT_PENDING = 0
    OUT_DELIVERED = 1
    OUT_FAILED = 2
    OUT_EXPIRED = 3
    OUT_DROPPED = 4     # given up by its own producer because the buffer was full
    OUT_SENT = 5        # written whole, and no answer was asked for
    OUT_MIXED = 6       # of a pack that was split: see its parts


cdef enum PackClaim:    # who decides over a sealed pack of a producer that drops the oldest
    CL_FREE = 0         # nobody yet: the first to claim it
    CL_HELD = 1         # its executor, which writes or settles it
    CL_SENT = 2         # its executor, finally: some byte of it was written to a socket
    CL_DROPPED = 3      # a sender gave it up: it is entered in the accounting, and its executor only releases it


cdef enum:
    ASKED = 4               # connections with open attempts for which the struct itself has room
    SPARE_CLASSES = 40      # of spare buffers: one for each power of two
    HEAP_COST = 32          # bytes that the C library uses beside a pack and its buffer


ctypedef struct Asked:      # the attempts that were written to one connection and have no answer
    int conn
    int open                # how many
    int64_t connect         # which socket of the connection, counted by connects
    int attempt             # number of the newest, 1 for the first


ctypedef struct PackResult:    # the shared final result of a pack, for those who hold a Delivery
    int64_t refs            # atomic
    int64_t done            # atomic: 0, then 1 after the rest is written
    int outcome
    int code                # the server's error code, or a LocalCode
    int attempts
    int watches             # guarded by the accounting's lock: calls that Python asked for
    int refused             # code of the last refusal, 0 without one; `text` belongs to it
    bint maybe_delivered
    Parts* parts            # with OUT_MIXED: the results; holds a reference
    bint watched            # guarded by the accounting's lock: Python asked for a call when it is done
    void* loop_waits        # guarded by the accounting's lock: event loops that wait for it (producer/aio/loopqueue)
    uint32_t seq
    char id[32]             # the pack's id, constant
    void* open_pack         # guarded by the batcher's lock: the pack while it is open
    int64_t latency_us
    int64_t settled_us      # when it became final, by the monotonic clock; 0 for what was dropped on arrival
    char node[64]
    char text[160]


ctypedef struct Pack:
    # The fields that an append reads and writes, in one cache line: with many open packs each line costs time.
    # Bytes: [head room | items | tail room].
    uint8_t* buf
    size_t cap
    size_t head             # head room in front of the items
    size_t body_n           # bytes of items in the buffer
    size_t most             # the highest `body_n`, lowered by held bodies; a larger message is alone (open packs)
    void* stream
    int64_t bucket          # span of data time that its messages share (open packs)
    uint32_t count          # messages
    int items               # ItemForm
    # Where it is.
    Pack* next              # in the list that holds it
    Pack* prev
    int state               # PackState
    bint own_ids            # some of its messages have an id that the caller gave
    Held* held              # bodies that are not in the buffer; NULL: none
    PackResult* pack_result  # may be NULL
    bint compressed         # the items are one snappy block
    uint8_t* frame          # sealed: first byte of the frame inside buf
    size_t frame_n          # bytes of the frame, held bodies included
    # Identity, the same in all attempts.
    uint32_t seq
    int id_n
    char id[32]             # sent as a frame attribute; empty: none
    int64_t data_time_ms
    Slice attrs             # attribute text; borrowed from the stream, which outlives the pack
    void* key_queue         # of a message with a key, else NULL; outlives the pack
    bint lingered           # still open after its linger time, because its key queue is busy
    bint counted            # counted in KeyQueue.unsettled
    # Its stream may be unknown to servers (conn/unknown).
    Unknown* unknown        # of its stream, NULL: nothing waits for it
    int64_t unknown_us      # when it was first refused for that, 0: never
    int unknown_n           # attempts of its frame, or of its part, that were refused for that
    bint unknown_waits      # in backoff for that
    bint unknown_counted    # its charge is in the sum of what waits for unknown streams
    size_t noted            # open packs: its bytes in `Batcher.unknown_open`; guarded by the batcher's lock
    bint tied               # its result concerns others: it has a key queue, or waits for an unknown stream
    # Accounting.
    int64_t memory          # its bytes in its pool's `in_use`; the owner sets it by pool_count and pool_uncount
    int64_t shed            # the part of `memory` that senders count as free already, because one gave the pack up
    size_t charge           # bytes counted against the buffer limit: size of its items when it was sealed
    int64_t serial          # counts the sealed packs of a producer; a flush waits for all up to one
    Pack* older             # neighbours in the accounting's order of sealing
    Pack* newer
    # Delivery.
    int64_t opened_us
    int64_t deadline_us
    int64_t sent_us         # start of its ack timeout: conn/progress
    int64_t written_us      # when its last byte was written to a socket, in the newest attempt
    int64_t sent_end        # bytes written to its connection up to and including its last byte
    int attempts            # times it was written whole
    int open_attempts       # attempts without an answer: the frame may be stored
    Asked asked[4]          # connections whose answers count: conn/inflight
    Asked* asked_more       # used instead of `asked` if that is too small; owned by the executor that has the pack
    int asked_room          # of asked_more
    int n_asked
    bint asked_lost         # there was no memory for one of these entries
    bint touched            # some byte of it was written to a socket
    bint answered           # a success arrived while a later attempt was half written
    int conn                # index of the connection it is queued or in flight on, -1 otherwise
    int group               # number of its group, 0 where groups have none
    bint aside              # while it waits: connections to other clusters work, so that it is no work for them
    Timer timer             # deadline, or the next attempt
    int64_t claim           # atomic: PackClaim
    int executor            # index of the executor that has it since it was sealed
    Pack* dropped_next      # in the executor's list of packs that senders gave up
    # Result.
    int outcome             # Outcome
    int code
    int64_t latency_us      # from opened_us to the final result
    Parts* parts            # of a pack that is or was split, else NULL; holds a reference
    bint report             # it goes to the completion queue
    bint watched            # calls are made for it, independent of the report
    int64_t waits           # its bytes among the results that wait for callbacks
    int refused             # code of the newest refusal by a server, 0 without one
    char* error_text        # text of this refusal; owned, may be NULL
    char node[64]


ctypedef struct PackList:
    Pack* head
    Pack* tail
    int64_t n


ctypedef struct PackPool:   # counts the memory of a producer's packs, and keeps spare ones with their buffers
    pthread_mutex_t lock
    Pack* spare[40]         # guarded by lock: by the size of their buffers
    int64_t spare_bytes     # guarded by lock; only an estimate for readers without the lock
    int64_t max_bytes       # limit of spare_bytes; written under lock
    int64_t most            # constant: limit of all packs together; spare packs are released to keep it
    int64_t spread          # constant: a pack without a frame counts so many times, since framing may make it so large
    int64_t in_use          # atomic: bytes of packs that were taken and not given back, with their whole buffers
    Held* returned          # guarded by lock: of finished packs; a thread that holds the GIL gives the references back
    int64_t returned_bytes  # guarded by lock: of their bodies; only an estimate for readers without the lock


cdef inline int pack_after(int state) noexcept nogil:
    """Return the states that may follow ``state``, as bits."""
    if state == PK_OPEN:
        return AFTER_OPEN
    if state == PK_POSTED:
        return AFTER_POSTED
    if state == PK_WAITING:
        return AFTER_WAITING
    if state == PK_QUEUED:
        return AFTER_QUEUED
    if state == PK_IN_FLIGHT:
        return AFTER_IN_FLIGHT
    if state == PK_BACKOFF:
        return AFTER_BACKOFF
    if state == PK_HELD:
        return AFTER_HELD
    if state == PK_TAKEN:
        return AFTER_TAKEN
    return AFTER_SETTLED


cdef inline const char* pack_state_name(int state) noexcept nogil:
    """Return the name that assertions show."""
    if state == PK_OPEN:
        return "open"
    if state == PK_POSTED:
        return "posted"
    if state == PK_WAITING:
        return "waiting"
    if state == PK_QUEUED:
        return "queued"
    if state == PK_IN_FLIGHT:
        return "in flight"
    if state == PK_BACKOFF:
        return "in backoff"
    if state == PK_SETTLED:
        return "settled"
    if state == PK_HELD:
        return "held"
    if state == PK_TAKEN:
        return "taken"
    return "unknown"


cdef inline void pack_enter(Pack* p, int state) noexcept nogil:
    """Change the state of a pack; nothing else writes ``Pack.state``.  Locality: owner.

    A release build sets the state in any case: it says which list the caller puts the pack into, and ``detach`` takes
    the pack out of the list that its state names.
    """
    dp_assert(
        (pack_after(p.state) >> state) & 1,
        "the change of state is legal: a pack goes from %s to %s (seq=%u, count=%u)",
        pack_state_name(p.state), pack_state_name(state), p.seq, p.count)
    p.state = state


cdef inline size_t pack_apart(const Pack* p) noexcept nogil:
    """Return the bytes of bodies that belong to its items and are not in its buffer."""
    return p.held.bytes if p.held != NULL else 0


cdef inline size_t pack_items(const Pack* p) noexcept nogil:
    """Return the bytes of all items, held bodies included."""
    return p.body_n + pack_apart(p)


cdef void list_push(PackList* l, Pack* p) noexcept nogil
cdef void list_remove(PackList* l, Pack* p) noexcept nogil
cdef Pack* list_pop(PackList* l) noexcept nogil

cdef inline int64_t pack_cost(size_t cap) noexcept nogil:
    """Return the bytes that a spare pack with a buffer of ``cap`` bytes takes."""
    return <int64_t>(sizeof(Pack) + cap + HEAP_COST)


cdef inline int64_t pack_memory(size_t cap) noexcept nogil:
    """Return the bytes that a pack with a buffer of ``cap`` bytes counts for, its result included."""
    return pack_cost(cap) + <int64_t>sizeof(PackResult)


cdef inline size_t pack_loose(size_t need) noexcept nogil:
    """Return the size of the largest buffer that is not too large for ``need`` bytes."""
    return need + need // 4 + 1024


cdef inline int64_t pool_bytes(const PackPool* pool) noexcept nogil:
    """Return the bytes of packs that were taken and not given back, with their whole buffers."""
    return atomic_load(&pool.in_use)


cdef void pool_open(PackPool* pool, size_t max_bytes, int64_t most) noexcept nogil
cdef void pool_close(PackPool* pool) noexcept nogil
cdef void pool_retire(PackPool* pool) noexcept nogil
cdef Pack* pool_take(PackPool* pool, size_t head, size_t cap) noexcept nogil
cdef void pool_give(PackPool* pool, Pack* p) noexcept nogil
cdef void pool_count(PackPool* pool, Pack* p) noexcept nogil
cdef void pool_uncount(PackPool* pool, Pack* p) noexcept nogil
cdef void pack_fit(PackPool* pool, Pack* p, size_t tail) noexcept nogil
cdef void pack_strip(Pack* p) noexcept nogil
cdef int pack_solid(Pack* p, size_t tail) noexcept nogil
cdef void pool_return(PackPool* pool, Pack* p) noexcept nogil
cdef Held* pool_take_returned(PackPool* pool) noexcept nogil
cdef bint pack_hold(Pack* p) noexcept nogil
cdef void pack_let_go(Pack* p) noexcept nogil
cdef int pack_grow(Pack* p, size_t cap) noexcept nogil
cdef size_t room_for(const Pack* p, size_t extra) noexcept nogil
cdef int pack_room(Pack* p, size_t extra) noexcept nogil
cdef PackResult* pack_result_new() noexcept nogil
cdef void pack_result_release(PackResult* v) noexcept nogil
