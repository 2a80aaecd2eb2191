"""One accepted request on its way from a server loop to the store and back: the entry, its memory, and the ids in it.

One block holds the struct and every byte it points to.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.faults.table cimport FaultWhat
from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.wire.api cimport WireOps


cdef enum EntryIdConst:
    ID_OF_REST = 0xFFFFFFFF     # EntryId.item: all messages of the entry that have no id of their own


cdef enum EntryKind:
    ENTRY_MESSAGES = 0
    # Where a consumer group goes on in a log: `group` is the log's topic, `stream` the consumers' group, `offset` the
    # position.  It has no value, and gets no offset.
    ENTRY_OFFSET = 1        # nobody on a server loop waits for it
    ENTRY_CONFIRM = 2       # `reply` answers it
    ENTRY_FETCH = 3         # `reply` is a request for messages, which goes on once the position is stored


cdef enum EntryIdKind:
    ID_MADE = 0             # by a producer or the Spark sink, or by place
    ID_GIVEN = 1            # by an application
    ID_ROWS = 2             # rows of one block of the Spark sink (server/store/window/rowblocks), one after the other


ctypedef struct EntryId:    # identity of one message, of several that share one, or of several rows
    uint64_t high           # hash of group, stream and id, or of the block
    uint64_t low
    uint64_t digest         # hash of the bytes; none for rows, whose block's name has one
    uint32_t item           # index of the (first) message, or ID_OF_REST
    uint32_t messages       # number of messages with this identity
    uint32_t row            # place of the first row in its block
    int kind                # EntryIdKind


# Takes ownership back; called on the committing thread.  chain NULL: there is room again after ST_FULL.
ctypedef void (*EntryDone)(void* origin, Entry* chain) noexcept nogil


ctypedef struct Joint:      # what several entries are answered together by, freed with the last of them; its user's
    int left                # bytes follow the struct.  Entries that are not settled
    int holders             # entries that are not freed
    int status
    bint answered           # somebody waits for the answer
    uint64_t first          # offset
    Buf ids                 # of those that are stored


ctypedef struct Entry:      # one malloc block: the struct, then the bytes that the slices point to (see `block`)
    Entry* next
    # Origin: the server loop that gets the entry back, and the session to answer there.
    void* origin
    uint64_t session
    int64_t place           # its turn among the answers of the session
    # Routing and counts.
    Slice group             # the topic of the log
    Slice stream
    uint32_t partition
    uint32_t records
    int64_t data_time_ms
    int64_t receive_ms
    Slice value             # bytes to store: queue header (store/header) + InLongMsg; entry_new writes the header
    void* block             # NULL, or a malloc block: the room that the store wants, then `value`; it may take it
    FaultWhat* fault        # how a fault changes the reply, NULL: not at all; owned
    Slice reply             # success answer, sent after the commit; empty = no answer wanted
    bint unanswered         # `reply` is used only for a refusal
    int kind                # EntryKind
    uint32_t serial         # of the request; positions alone
    uint64_t version        # of a position: one with a lower version than the stored one changes nothing
    EntryDone back          # takes the entry back; NULL: who takes all entries of the committer
    Joint* joint            # of one of several; NULL: it is answered alone
    Slice ids               # EntryIds, when the store keeps a de-duplication window; else empty
    uint32_t items          # messages in `value`, with ids
    # Filled by the store.
    uint64_t offset         # not set when nothing was left to store
    uint32_t log            # the store's number of the log
    uint32_t duplicates     # messages that were not stored because they, or their ids, are stored already
    uint32_t conflicts      # messages whose id was known with other bytes, stored or not
    int64_t reach_ms        # how long such messages are remembered; -1 without a de-duplication window
    int status              # ST_OK, ST_DISK_FULL, ST_LIMIT (of a name: its bytes, or how many there are) or ST_STORE


ctypedef struct StoreOps:   # a store as the committer sees it; called by one thread at a time
    # Append a chain of entries as one commit.  Sets offset and status of each; on return everything
    # with ST_OK is durable (in a durable store).  Never frees entries.
    void (*append)(void* store, Entry* chain) noexcept nogil
    # Drop what is past the retention limits, by the store's own clock.  Returns the number of entries dropped.
    int64_t (*retain)(void* store) noexcept nogil
    size_t room             # bytes in front of a value that let the store keep it without a copy; 0: it copies all
    size_t keeps            # bytes from which on a value is kept so, if there is `room`
    bint brief              # append waits for no disk, so that a server loop may call it itself


ctypedef struct Middle:     # bytes of an InLongMsg that lie elsewhere, and where in parts.value they belong
    Slice bytes
    size_t at


# A position of a consumer group, in one block: copies of topic, group and reply, and the other fields of `parts` that
# positions have.  NULL: no memory.
cdef Entry* entry_offset(const Entry* parts) noexcept nogil
# Every field that is copied from `parts` is documented at Entry; parts.value is the InLongMsg alone, without `middle`:
# the queue header is written in front of it.  A value that the store keeps gets a block of its own.  NULL: no memory.
cdef Entry* entry_new(
    const Entry* parts, Slice source, Slice node, const Middle* middle, const StoreOps* ops,
) noexcept nogil
cdef void entry_free(Entry* entry) noexcept nogil
cdef void entry_free_chain(Entry* chain) noexcept nogil
cdef size_t entry_footprint(const Entry* entry) noexcept nogil


ctypedef struct IdReader:       # one for each thread that makes entries
    const WireOps* wire
    const HashKey* key          # NULL: there is no window, and nothing is read
    Buf unpacked
    Buf items
    Buf rest
    Buf name
    Buf ids
    Slice last_row          # id of the message before, if it is a row's


cdef void ids_init(IdReader* r, const WireOps* wire, const HashKey* key) noexcept nogil
cdef void ids_free(IdReader* r) noexcept nogil
# Set ids and items of the parts from their group, stream, value and records; they stay valid until the next call.
cdef int ids_read(IdReader* r, Entry* parts) noexcept nogil    # ST_OK or ST_NO_MEMORY
