"""Streams of a producer: (group, stream, attributes) -> one attribute text and its open packs."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.pack.unknown cimport Unknown
from dataproxy._core.base.slice cimport Slice


ctypedef struct Stream:         # lives as long as something refers to it; its text follows it in memory
    # What an append or a look at the table reads comes first, in one cache line: with many streams every line counts.
    Pack* plain                 # open pack of messages without own time or attributes; guarded by the batcher's lock
    size_t max_body             # largest body that fits a frame with this text; set under the batcher's lock, atomic
    Stream* next                # in its hash slot; guarded by the batcher's lock
    uint64_t hash
    Slice group                 # inside text
    Slice stream
    # The second line, for messages with own time or attributes.
    Pack* newest                # the last of `others`, NULL: none; guarded by the batcher's lock
    # The rest is for opening and sealing.
    Slice attrs                 # inside text, empty: none
    uint8_t* text               # groupId=G&streamId=S[&attributes]; constant
    size_t text_n
    size_t tail                 # bytes that a frame adds behind its items, at most; set under the batcher's lock
    # Guarded by the batcher's lock.
    Pack** others               # open packs of one span of time or with item attributes
    int n_others
    size_t size_hint            # bytes of the last sealed pack
    int group_number            # of its group, for the choice of a cluster; constant
    Stream* bare  # the stream of the same names without attributes: owns the key queues; a reference; or NULL
    KeyQueue** key_queues       # by key bucket, NULL until needed
    int n_key_queues
    Pack* refused[2]            # dropped messages to be reported (results/refusals); guarded by Completions.lock
    int64_t users               # atomic: number of references
    bint is_unknown             # packs wait because servers do not know it; guarded by the batcher's lock
    Unknown unknown             # what executors note about that
    Stream* next_idle           # in StreamTable.idle
    int64_t used                # atomic: not 0 if a pack was opened since the last check


ctypedef struct StreamTable:    # guarded by the batcher's lock
    Stream** slots
    size_t mask
    size_t n
    int64_t idle            # atomic, a Stream*: first of the idle list, which holds a reference to each stream in it


cdef inline size_t streams_text_size(Slice group, Slice stream, Slice attrs) noexcept nogil:
    """Return how long the text of a stream is.  Locality: any thread.  Locks: none."""
    return 8 + group.n + 10 + stream.n + (1 + attrs.n if attrs.n else 0)


cdef void stream_hold(Stream* s) noexcept nogil
cdef bint stream_release(StreamTable* t, Stream* s) noexcept nogil
cdef void streams_fetch(const Stream* s) noexcept nogil
cdef int streams_open(StreamTable* t) noexcept nogil
cdef void streams_close(StreamTable* t) noexcept nogil
cdef KeyQueue* streams_key_queue(Stream* s, int bucket, int buckets, int executors) noexcept nogil
cdef void streams_keep(Stream* s, Pack* p) noexcept nogil
cdef void streams_forget(Stream* s, Pack* p) noexcept nogil
cdef uint64_t streams_hash(Slice group, Slice stream, Slice attrs) noexcept nogil
cdef Stream* streams_find(const StreamTable* t, Slice group, Slice stream, Slice attrs) noexcept nogil
cdef Stream* streams_find_hashed(
    const StreamTable* t, uint64_t h, Slice group, Slice stream, Slice attrs) noexcept nogil
cdef Stream* streams_add(StreamTable* t, Slice group, Slice stream, Slice attrs, int max_others) noexcept nogil
cdef void streams_remove(StreamTable* t, Stream* s) noexcept nogil
