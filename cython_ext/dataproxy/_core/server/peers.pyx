"""Producers of one server loop: a list that others may read, kept up to date where frames and connections are.

A frame costs a comparison with the stream of the frame before it, and two additions.  Memory has a bound: a
connection has one block, with the names of its first streams; connections that have ended are kept until somebody
asks, the newest of them.

Locality: server loop, except where a function says otherwise.  Locks: takes Peers.mutex.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_put
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport relaxed_load, relaxed_store
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)

cdef enum:
    NAME_MOST = 255


cdef void peers_init(Peers* p) noexcept nogil:
    """Make an empty list.  Locality: owner.  Locks: none."""
    memset(p, 0, sizeof(Peers))
    pthread_mutex_init(&p.mutex, NULL)


cdef void peers_free(Peers* p) noexcept nogil:
    """Release everything.  Locality: owner, after the loop has ended.  Locks: none."""
    _free_all(p.first)
    _free_all(p.ended)
    p.first = NULL
    p.ended = NULL
    pthread_mutex_destroy(&p.mutex)


cdef void _free_all(Peer* one) noexcept nogil:
    """Release a list.  Locks: none."""
    cdef Peer* following
    while one != NULL:
        following = one.next
        free(one)
        one = following


cdef Peer* peers_join(
    Peers* p, uint64_t session, int listener, Slice source, int port, int64_t now_us
) noexcept nogil:
    """Take a new connection; NULL: no memory is left, and it is not listed."""
    cdef Peer* peer = <Peer*>calloc(1, sizeof(Peer))
    if peer == NULL:
        return NULL
    peer.session = session
    peer.listener = listener
    peer.since_us = now_us
    peer.seen_us = now_us
    peer.port = port
    peer.source_n = <uint8_t>source.n
    memcpy(peer.source, source.p, source.n)
    pthread_mutex_lock(&p.mutex)
    peer.next = p.first
    if p.first != NULL:
        p.first.prev = peer
    p.first = peer
    pthread_mutex_unlock(&p.mutex)
    return peer


cdef void peers_end(Peers* p, Peer* peer, int reason) noexcept nogil:
    """Let a connection be one that has ended, until somebody has asked; the oldest of them makes room."""
    cdef Peer* oldest = NULL
    if peer == NULL:
        return
    pthread_mutex_lock(&p.mutex)
    if peer.prev != NULL:
        peer.prev.next = peer.next
    else:
        p.first = peer.next
    if peer.next != NULL:
        peer.next.prev = peer.prev
    peer.prev = NULL
    peer.next = NULL
    peer.reason = reason
    if p.ended == NULL:
        p.ended = peer
    else:
        p.ended_last.next = peer
    p.ended_last = peer
    p.n_ended += 1
    if p.n_ended > PEERS_ENDED:
        oldest = p.ended
        p.ended = oldest.next
        p.n_ended -= 1
        p.forgotten += 1
    pthread_mutex_unlock(&p.mutex)
    free(oldest)


cdef inline bint _is(const Peer* peer, int i, Slice group, Slice stream) noexcept nogil:
    """Tell whether a stream that is kept has these names.  Locks: none."""
    cdef const PeerStream* one = &peer.streams[i]
    return (one.group_n == group.n and one.stream_n == stream.n
            and (group.n == 0 or memcmp(&peer.text[one.at], group.p, group.n) == 0)
            and (stream.n == 0 or memcmp(&peer.text[one.at + one.group_n], stream.p, stream.n) == 0))


cdef void peers_count(Peers* p, Peer* peer, Slice group, Slice stream, uint32_t messages) noexcept nogil:
    """Count a request that goes to the store.  Locks: takes Peers.mutex for a stream that is new here."""
    cdef int i
    relaxed_store(&peer.requests, relaxed_load(&peer.requests) + 1)     # nobody else writes them
    relaxed_store(&peer.messages, relaxed_load(&peer.messages) + messages)
    if peer.n_streams and _is(peer, peer.latest, group, stream):
        return
    for i in range(peer.n_streams):
        if _is(peer, i, group, stream):
            peer.latest = i
            return
    _name(p, peer, group, stream)


cdef void _name(Peers* p, Peer* peer, Slice group, Slice stream) noexcept nogil:
    """Keep the names of a stream, if there is room for them."""
    cdef PeerStream* one
    pthread_mutex_lock(&p.mutex)
    if (peer.n_streams == PEER_STREAMS or group.n > NAME_MOST or stream.n > NAME_MOST
            or peer.text_n + group.n + stream.n > PEER_TEXT):
        peer.unnamed += 1
    else:
        one = &peer.streams[peer.n_streams]
        one.at = <uint16_t>peer.text_n
        one.group_n = <uint8_t>group.n
        one.stream_n = <uint8_t>stream.n
        if group.n:
            memcpy(&peer.text[peer.text_n], group.p, group.n)
        if stream.n:
            memcpy(&peer.text[peer.text_n + group.n], stream.p, stream.n)
        peer.text_n += group.n + stream.n
        peer.latest = peer.n_streams
        peer.n_streams += 1
    pthread_mutex_unlock(&p.mutex)


cdef int _put(Buf* out, const Peer* peer) noexcept nogil:
    """Append a copy, with the counters as they are now.  Locks: the caller holds the mutex."""
    cdef Peer copy
    copy.prev = copy.next = NULL
    copy.session, copy.listener, copy.since_us = peer.session, peer.listener, peer.since_us
    copy.port, copy.source_n = peer.port, peer.source_n
    memcpy(copy.source, peer.source, ADDRESS_TEXT)
    copy.seen_us = relaxed_load(&peer.seen_us)
    copy.requests = relaxed_load(&peer.requests)
    copy.messages = relaxed_load(&peer.messages)
    copy.reason, copy.n_streams, copy.unnamed, copy.text_n = peer.reason, peer.n_streams, peer.unnamed, peer.text_n
    copy.latest = 0
    memcpy(copy.streams, peer.streams, sizeof(peer.streams))
    memcpy(copy.text, peer.text, PEER_TEXT)
    return buf_put(out, &copy, sizeof(Peer))


cdef int peers_copy(Peers* p, Buf* there, Buf* ended, int64_t* forgotten) noexcept nogil:
    """Append copies of who is there and of who has ended; ST_OK, or ST_NO_MEMORY, when nothing is forgotten.

    Locality: any thread.
    """
    cdef int status = ST_OK
    cdef Peer* one
    cdef Peer* old = NULL
    pthread_mutex_lock(&p.mutex)
    one = p.first
    while one != NULL and status == ST_OK:
        status = _put(there, one)
        one = one.next
    one = p.ended
    while one != NULL and status == ST_OK:
        status = _put(ended, one)
        one = one.next
    if status == ST_OK:
        old = p.ended
        p.ended = NULL
        p.ended_last = NULL
        p.n_ended = 0
        forgotten[0] += p.forgotten
        p.forgotten = 0
    pthread_mutex_unlock(&p.mutex)
    _free_all(old)
    return ST_OK if status == ST_OK else ST_NO_MEMORY
