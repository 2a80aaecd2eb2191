"""What calls of data need besides their loop: registrations, the store, and news of entries that have come in."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.arrivals cimport Arrivals
from dataproxy._core.server.committer cimport Committer
from dataproxy._core.server.entries cimport Entry
from dataproxy._core.server.store.visits cimport Visitor
from dataproxy._core.server.tubemq.registrations cimport Registrations


cdef enum FetchCode:            # of requests for messages, besides a RegistrationCode
    CODE_NOTHING = 404
    CODE_LIMITED = 452          # the group reads faster than its flow rules allow


ctypedef struct TubeBroker:
    # Constant while server loops run.
    Registrations* registrations
    Visitor visit
    void* store                 # of `visit`
    Committer* committer
    bint keeps                  # confirmed positions belong on disk
    int64_t wait_us             # a request that finds nothing waits so long at most; 0: not at all
    Arrivals news               # of its atomics, each is of its own
    # Statistics, relaxed atomics.
    int64_t packs
    int64_t messages
    int64_t bytes
    int64_t confirms


ctypedef struct Claim:          # who asks for which partition of a group
    Slice client
    Slice group
    Slice topic
    int32_t partition


ctypedef struct Confirmed:      # what a confirm came to
    int code                    # RegistrationCode
    int64_t position
    uint64_t version
    bint moved                  # the position is a new one
    bint unkept                 # it was confirmed, and is not known to be on disk


# Refresh the claim and confirm what was read last, if `consumed`, or let it be read again.
cdef void broker_confirm(TubeBroker* b, const Claim* c, bint consumed, int64_t now_us, Confirmed* out) noexcept nogil
cdef void broker_kept(TubeBroker* b, const Entry* entry) noexcept nogil     # a position that the store has now
# The entry that stores what was confirmed; NULL: no memory.
cdef Entry* broker_entry(const Claim* c, const Confirmed* what, Slice reply) noexcept nogil
cdef const char* code_text(int code) noexcept nogil
