"""Memory of a server loop held by peers: half-received frames and unread answers, by connection and by address.

Locks: none.
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.socket cimport AF_INET, AF_INET6, sockaddr_in, sockaddr_in6

cdef enum:
    BUCKETS = 64                # of a table with its first address
    MIX = 0x9E3779B9            # spreads neighbouring addresses


cdef void holders_init(Holders* h) noexcept nogil:
    """Make an empty account.

    Locality: server loop, or its owner.
    """
    memset(h, 0, sizeof(Holders))


cdef void holders_free(Holders* h) noexcept nogil:
    """Release every address.

    Locality: server loop, or its owner after the loop has ended.
    """
    cdef Holder* holder
    cdef size_t i
    for i in range(h.size):
        while h.buckets[i] != NULL:
            holder = h.buckets[i]
            h.buckets[i] = holder.next
            free(holder)
    free(h.buckets)
    holders_init(h)


cdef uint64_t holder_name(const Address* peer) noexcept nogil:
    """Return the number that stands for a peer's address; for IPv6 it stands for the whole network of 64 bits.

    Locality: any thread.
    """
    cdef const sockaddr_in* v4 = <const sockaddr_in*>&peer.raw
    cdef const sockaddr_in6* v6 = <const sockaddr_in6*>&peer.raw
    cdef uint64_t network = 0
    cdef uint32_t host = 0
    if peer.raw.ss_family == AF_INET6:
        memcpy(&network, &v6.sin6_addr, 8)
        if network == 0:        # an IPv4 address in the form of IPv6
            memcpy(&host, <const uint8_t*>&v6.sin6_addr + 12, 4)
            return host
        return network
    if peer.raw.ss_family == AF_INET:
        memcpy(&host, &v4.sin_addr, 4)
    return host


cdef size_t _bucket(const Holders* h, uint64_t name) noexcept nogil:
    """Return where an address is looked for.  Locality: server loop."""
    cdef uint64_t mixed = (name ^ (name >> 32)) * <uint64_t>MIX
    return <size_t>(mixed ^ (mixed >> 29)) & (h.size - 1)


cdef bint _grow(Holders* h) noexcept nogil:
    """Make the table twice as large; false without memory.  Locality: server loop."""
    cdef Holders larger
    cdef Holder* holder
    cdef size_t i
    cdef size_t at
    larger.size = h.size * 2 if h.size > 0 else <size_t>BUCKETS
    larger.buckets = <Holder**>calloc(larger.size, sizeof(Holder*))
    if larger.buckets == NULL:
        return False
    for i in range(h.size):
        while h.buckets[i] != NULL:
            holder = h.buckets[i]
            h.buckets[i] = holder.next
            at = _bucket(&larger, holder.name)
            holder.next = larger.buckets[at]
            larger.buckets[at] = holder
    free(h.buckets)
    h.buckets = larger.buckets
    h.size = larger.size
    return True


cdef Holder* holders_join(Holders* h, uint64_t name) noexcept nogil:
    """Count one session more of an address.

    Locality: server loop.
    """
    cdef Holder* holder
    cdef size_t at
    if h.count >= h.size and not _grow(h) and h.size == 0:
        return NULL
    at = _bucket(h, name)
    holder = h.buckets[at]
    while holder != NULL and holder.name != name:
        holder = holder.next
    if holder == NULL:
        holder = <Holder*>calloc(1, sizeof(Holder))
        if holder == NULL:
            return NULL
        holder.name = name
        holder.next = h.buckets[at]
        h.buckets[at] = holder
        h.count += 1
    holder.sessions += 1
    return holder


cdef void holders_leave(Holders* h, Holder* holder) noexcept nogil:
    """Count one session less of an address, which holds nothing any more.

    Locality: server loop.
    """
    cdef Holder** at = &h.buckets[_bucket(h, holder.name)]
    cdef int row
    dp_assert(holder.sessions > 0, "an address that is left has a session: sessions=%ld", holder.sessions)
    holder.sessions -= 1
    if holder.sessions > 0:
        return
    for row in range(ROWS):
        dp_assert(holder.bytes[row] == 0 and holder.count[row] == 0,
                  "an address without sessions holds nothing: row=%d, bytes=%ld", row, holder.bytes[row])
    while at[0] != holder:
        at = &at[0].next
    at[0] = holder.next
    h.count -= 1
    free(holder)


cdef inline int64_t _held(const Holder* holder, HoldingKind kind) noexcept nogil:
    """Return the bytes of one kind that an address holds.  Locality: server loop."""
    return holder.bytes[2 * <int>kind] + holder.bytes[2 * <int>kind + 1]


cdef void holders_set(Holders* h, Holder* holder, Holding* holding, HoldingKind kind, int64_t bytes,
                      bint progress) noexcept nogil:
    """Note how many bytes a session holds now.

    Locality: server loop.
    """
    cdef int row = 2 * <int>kind + holding.proven
    cdef bint listed = holding.bytes > 0
    h.bytes[<int>kind] += bytes - holding.bytes
    holder.bytes[row] -= holding.bytes
    if listed and (progress or bytes == 0):
        _unlist(holder, holding, row)
        listed = False
    if progress:
        holding.proven = True
        row = 2 * <int>kind + 1
    holder.bytes[row] += bytes
    holding.bytes = bytes
    if bytes > 0 and not listed:
        _list(holder, holding, row)
    dp_assert(0 <= holder.bytes[row] and _held(holder, kind) <= h.bytes[<int>kind],
              "an address holds a part of all: %ld of %ld", _held(holder, kind), h.bytes[<int>kind])
    dp_assert(0 <= holder.count[row] <= holder.sessions, "count <= sessions: count=%ld, sessions=%ld",
              holder.count[row], holder.sessions)


cdef void _list(Holder* holder, Holding* holding, int row) noexcept nogil:
    """Put a holding behind the others of its address and row.  Locality: server loop."""
    holding.next = NULL
    holding.prev = holder.last[row]
    if holding.prev != NULL:
        holding.prev.next = holding
    else:
        holder.first[row] = holding
    holder.last[row] = holding
    holder.count[row] += 1


cdef void _unlist(Holder* holder, Holding* holding, int row) noexcept nogil:
    """Take a holding out.  Locality: server loop."""
    if holding.prev != NULL:
        holding.prev.next = holding.next
    else:
        holder.first[row] = holding.next
    if holding.next != NULL:
        holding.next.prev = holding.prev
    else:
        holder.last[row] = holding.prev
    holder.count[row] -= 1


cdef Holding* holders_payer(Holders* h, HoldingKind kind) noexcept nogil:
    """Return the holding to close: of the address that holds the most, the one longest without progress.

    Those that never made progress pay while they hold half of it or more: a busy machine may hold up the frame of an
    honest peer for longer than connections of a hostile one last, which come again and again.  Else those that made
    some pay: they may be hostile, too, after a heartbeat each, and would keep out whoever comes for ever.  Connections
    that hold less than half of the mean of theirs are skipped: many of them would have to be closed to free as much
    memory as one of the others.
    Locality: server loop.
    """
    cdef Holder* most = NULL
    cdef Holder* holder
    cdef Holding* holding
    cdef size_t i
    cdef int row = 2 * <int>kind
    for i in range(h.size):
        holder = h.buckets[i]
        while holder != NULL:
            if _held(holder, kind) > 0 and (most == NULL or _held(holder, kind) > _held(most, kind)):
                most = holder
            holder = holder.next
    if most == NULL:
        return NULL
    if most.bytes[row + 1] > most.bytes[row]:
        row += 1
    holding = most.first[row]
    while 2 * holding.bytes * most.count[row] < most.bytes[row]:
        holding = holding.next      # one of them holds the mean or more
    return holding
