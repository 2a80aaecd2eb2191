"""Packs: messages of one partition, from the store's pages to the bytes of an answer."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.server.store.visits cimport Visit
from dataproxy._core.server.tubemq.broker cimport TubeBroker
from dataproxy._core.server.tubemq.registrations cimport Standing
from dataproxy._core.wire.tubemq.get cimport GetRequest


cdef enum PackConst:
    PACK_ENOUGH = 327680        # bytes of a pack behind which nothing is added, as of a Java broker ...
    PACK_MOST = 524288          # ... and those it never has more of, unless it is a single message
    PACK_MESSAGES = 8000
    PACK_AROUND = 64            # bytes of an entry that are not counted: a Java broker has 52 of its own, and no names


ctypedef struct PackReader:     # of a server loop: memory that is used again
    Visit visit
    Buf parts                   # TubeParts
    Buf heads                   # bytes before their bodies
    Buf ends                    # where each head ends in `heads`
    Buf streams                 # Slices of filters
    Buf filters                 # their bytes
    int64_t minute              # that `time` is the text of
    char time[16]


ctypedef struct PackCall:       # a request for a pack
    # Wanted.
    const GetRequest* asked
    uint32_t serial
    const Standing* since       # it is asked again, and gets what nobody else has asked for since; NULL: the first time
    int64_t now_us
    int64_t wall_ms
    Buf* out                    # the frame of an answer with messages is appended
    # Found.
    int code                    # behind ST_CLOSED: why the answer has no messages
    int32_t wait_ms             # with it: not to be asked for again before
    Standing now
    size_t n                    # messages
    bint more                   # there are some behind them
    # While the store is visited.
    TubeBroker* broker
    PackReader* reader
    int64_t at                  # where it begins, as a client's position
    size_t bytes                # of its payloads


cdef void packs_init(PackReader* p) noexcept nogil
cdef void packs_free(PackReader* p) noexcept nogil
# ST_OK, with or without messages; ST_CLOSED with a code; ST_LIMIT: the next message is too large for any frame;
# ST_STORE, described by the visit; ST_NO_MEMORY.
cdef int pack_read(TubeBroker* b, PackReader* p, PackCall* x) noexcept nogil
