"""Producers that are connected to one server loop: who they are and what each has sent."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dataproxy._core.base.address cimport ADDRESS_TEXT
from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.thread cimport pthread_mutex_t


cdef enum:
    PEER_STREAMS = 8            # that are kept by name, of each connection
    PEER_TEXT = 512             # bytes of their names
    PEERS_ENDED = 1024          # connections that have ended and that nobody has asked about


ctypedef struct PeerStream:     # its names are at `at` in the text, one behind the other
    uint16_t at
    uint8_t group_n
    uint8_t stream_n


ctypedef struct Peer:           # one connection
    Peer* prev                  # this and the next are guarded by the mutex
    Peer* next
    # Constant.
    uint64_t session
    int listener
    int64_t since_us
    int port
    uint8_t source_n
    char source[ADDRESS_TEXT]
    # Relaxed atomics; the server loop writes them.
    int64_t seen_us             # when its last frame came
    int64_t requests            # that go to the store
    int64_t messages            # in them
    # Guarded by the mutex; the server loop alone writes them, and reads them without it.
    int reason                  # CloseReason, once it has ended
    int n_streams
    int latest                  # the stream of the last request
    int64_t unnamed             # requests of streams for whose names there is no room
    size_t text_n
    PeerStream streams[PEER_STREAMS]
    uint8_t text[PEER_TEXT]


ctypedef struct Peers:
    pthread_mutex_t mutex       # a leaf; the GIL is never taken while it is held
    Peer* first
    Peer* ended                 # the newest is the last
    Peer* ended_last
    int64_t n_ended
    int64_t forgotten           # ends for which there was no room


cdef void peers_init(Peers* p) noexcept nogil
cdef void peers_free(Peers* p) noexcept nogil
# NULL: no memory is left, and the connection is not listed.
cdef Peer* peers_join(
    Peers* p, uint64_t session, int listener, Slice source, int port, int64_t now_us
) noexcept nogil
cdef void peers_end(Peers* p, Peer* peer, int reason) noexcept nogil        # NULL: nothing happens
cdef void peers_count(Peers* p, Peer* peer, Slice group, Slice stream, uint32_t messages) noexcept nogil
# Append copies of who is there, and of who has ended since the last call; the latter are forgotten.
cdef int peers_copy(Peers* p, Buf* there, Buf* ended, int64_t* forgotten) noexcept nogil
