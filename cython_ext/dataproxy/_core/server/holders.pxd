"""Memory of a server loop held by peers: half-received frames and unread answers, by connection and by address.

Each kind has a bound over all connections.  When it is exceeded, a connection of the address that holds the most is
closed: of those that never made progress or of those that did, whichever hold more, the one that has been without it
for the longest time.  So no peer is closed for memory of others, and neither kind of connection can take all memory
from the other.
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.address cimport Address


cdef enum HoldingKind:
    HOLDS_FRAMES = 0        # receive memory that outlives a round
    HOLDS_ANSWERS = 1       # answers that the peer has not taken
    HOLDING_KINDS = 2


cdef enum:
    ROWS = 4                # of an address: for each kind of holding those without progress, and those with


ctypedef struct Holding:    # of one connection and kind
    Holding* prev           # of the same address and row, the longest without progress first; listed while bytes > 0
    Holding* next
    uint64_t session        # whose it is
    int64_t bytes
    bint proven             # it has made progress: completed a frame, or taken answers


ctypedef struct Holder:     # one address: an IPv4 address, or the network of an IPv6 one
    Holder* next            # in its bucket
    uint64_t name
    int64_t sessions
    int64_t bytes[ROWS]
    int64_t count[ROWS]
    Holding* first[ROWS]
    Holding* last[ROWS]


ctypedef struct Holders:    # of one server loop
    Holder** buckets        # a power of two of them
    size_t size
    size_t count
    int64_t bytes[HOLDING_KINDS]


cdef void holders_init(Holders* h) noexcept nogil
cdef void holders_free(Holders* h) noexcept nogil           # no session is left, or all are freed with it
cdef uint64_t holder_name(const Address* peer) noexcept nogil
cdef Holder* holders_join(Holders* h, uint64_t name) noexcept nogil        # one session more; NULL: no memory
cdef void holders_leave(Holders* h, Holder* holder) noexcept nogil          # one session less, which holds nothing
# A session holds so many bytes now; `progress` puts it behind all others of its address.
cdef void holders_set(Holders* h, Holder* holder, Holding* holding, HoldingKind kind, int64_t bytes,
                      bint progress) noexcept nogil
cdef Holding* holders_payer(Holders* h, HoldingKind kind) noexcept nogil    # NULL: nobody holds anything
