"""Batcher: the struct that the modules of this folder share, guarded by one lock.

They read and write it; nobody outside of this folder looks into it (`tests/arch/reach.py`).  The engine fills in its
pointers when it joins its parts.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.clock cimport Clock
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.net.executor cimport Executor
from dataproxy._core.pack.pack cimport PackList, PackPool
from dataproxy._core.pack.settled cimport SettledHook
from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.producer.accumulate.groups cimport GroupTable
from dataproxy._core.producer.accumulate.streams cimport Stream, StreamTable
from dataproxy._core.producer.ingest.ids cimport PackIds
from dataproxy._core.producer.results.accounting cimport Accounting
from dataproxy._core.producer.results.completions cimport Completions
from dataproxy._core.producer.results.undelivered cimport UndeliveredBuffer
from dataproxy._core.wire.api cimport WireOps

cdef enum:
    NO_TIME = -1            # the message has no data time of its own
    NO_KEY = -1
    PATIENCE_US = 250000    # longest `patience_us`; it is at most an eighth of the time left for the delivery


ctypedef struct Extras:     # what one call says about its bodies
    int64_t when_ms         # data time, NO_TIME without one
    Slice attrs             # item attributes of each message
    Slice own_id            # of a single message; rows have theirs beside the bodies
    int key_bucket          # NO_KEY for messages without a key
    int exempt              # Exempt
    void** owner            # reference that keeps a single body: a pack that holds the body takes it and sets NULL


cdef enum Exempt:           # which bounds of memory a call may exceed
    EX_NOTHING = 0
    EX_RESULTS = 1          # that of waiting results: the call is made on the thread of the callbacks
    EX_ALL = 2              # all: its messages were accepted before


cdef enum OnFull:           # what happens to a message for which there is no room
    OF_BLOCK = 0
    OF_RAISE = 1
    OF_DROP_NEWEST = 2
    OF_DROP_OLDEST = 3


ctypedef struct BatcherCounts:  # a copy of the counts of one moment
    int64_t accepted
    int64_t accepted_bytes
    int64_t open_messages
    int64_t charged


ctypedef struct Staging:    # messages accepted and in no pack yet (staging); guarded by the batcher's lock
    Stream* streams[64]
    uint32_t ends[64]       # where each body ends in bytes
    uint8_t bytes[16384]
    uint32_t n
    int64_t since_us        # when the first message came; not used when empty


ctypedef struct Batcher:
    # Constant.
    const WireOps* wire
    const Clock* clock
    PackPool* spares
    Accounting* accounting
    Completions* completions
    UndeliveredBuffer* undelivered
    SettledHook settled
    Executor** executors
    int n_executors
    size_t batch_bytes
    uint32_t batch_messages
    int max_others
    int64_t linger_us
    int64_t delivery_us
    int64_t patience_us     # an open pack waits at most so much longer than linger for room at the executors
    int on_full             # OnFull
    int64_t limit_bytes
    int64_t limit_messages  # 0: bounded by bytes alone
    int64_t spare_room      # bytes of memory kept for small packs: when no more is free, larger ones get what they need
    int64_t span_ms         # messages with a time of their own share a pack if they lie in the same span of so many ms
    int key_buckets         # 0: ordering is off
    int lines               # LineRule: bodies joined by LF
    size_t hold_from        # bytes from which on a body is not copied if its owner keeps it (`item_is_held`)
    Slice least             # attribute text of messages that have none (wire: FamilyForm)
    size_t pair_cost        # bytes that a frame needs for each pair of its attribute text beside the text
    size_t frame_spare      # bytes that a frame needs beside what openpacks count
    bint report_all         # every pack's result goes to the completion queue
    bint by_group           # groups have numbers, by which their packs find a cluster
    bint by_stream          # streams have these numbers, and so has each bucket of their keys: there are no groups
    # Guarded by lock.
    pthread_mutex_t lock
    size_t max_frame        # bytes of the largest frame that the next message may be in
    size_t least_room       # a body of at most so many bytes fits the frames of every stream
    size_t least_body       # the same; 0 while every message needs a look at its stream, because it may be unknown
    StreamTable streams
    GroupTable groups       # empty unless by_group
    PackList open           # in the order of opening
    int64_t accepted        # messages
    int64_t accepted_bytes  # of their bodies
    int64_t open_messages
    int64_t charged         # bytes ever counted against the limit
    int64_t paused_at       # `charged` when a sender of batches last paused
    uint32_t next_seq
    uint32_t fitted_seq     # `next_seq` when open packs were last made to fit
    PackIds ids
    int next_executor
    uint64_t wakes          # bits of executors that got something since the lock was taken (`openpacks_unlock`)
    bint tick_armed
    bint closed
    int unknown_streams     # streams that are marked as unknown (unknown)
    int64_t unknown_open    # bytes in their open packs
    Staging staged          # accepted and counted as open, in no pack yet
    int64_t unknown_bytes   # atomic: charges of sealed packs that wait for unknown streams
    int walks               # calls that use streams without a reference: until they end no stream is freed
