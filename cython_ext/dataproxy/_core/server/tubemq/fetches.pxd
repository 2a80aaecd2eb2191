"""Requests of consumers for messages: answered with a pack, or later, or that there is none."""

from libc.stddef cimport size_t

from dataproxy._core.server.entries cimport Entry
from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.tubemq.packs cimport PackReader
from dataproxy._core.server.tubemq.waits cimport Waits
from dataproxy._core.wire.api cimport Request


cdef enum FetchConst:
    PACKS_UNSENT = 4194304      # answers that a connection has to read before it gets another pack


ctypedef struct Fetches:        # of a server loop
    PackReader reader
    Waits waits
    size_t made                 # bytes of packs since answers were sent last


cdef void fetch_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil
cdef void fetch_settled(ServerLoop* d, Session* s, Entry* entry) noexcept nogil     # one of ENTRY_FETCH
cdef void fetches_follow(ServerLoop* d) noexcept nogil          # once in a round: entries have come, time has passed
cdef void fetches_end(ServerLoop* d) noexcept nogil             # answer all that wait: the hub stops
cdef void fetches_forget(ServerLoop* d, Session* s) noexcept nogil      # of a closed connection
cdef void fetches_free(ServerLoop* d) noexcept nogil
