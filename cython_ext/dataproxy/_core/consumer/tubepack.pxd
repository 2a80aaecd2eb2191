"""A pack: the messages of one answer of a broker, in the memory in which it came."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.tubemq.get cimport Got


cdef enum PackOutcome:
    PO_HELD = 0             # the group's offset has not passed it
    PO_CONFIRMED = 1        # the broker has taken the confirm
    PO_ROLLED_BACK = 2      # given back: by the application, or before the application had it
    PO_EXPIRED = 3          # not confirmed, and nobody can any more; `code` says why


cdef enum PackCode:         # of PO_EXPIRED; other codes are a broker's
    PC_LATE = -1            # it was out for longer than `confirm_timeout`
    PC_REVOKED = -2         # its partition was taken away, and the time to confirm is over
    PC_UNANSWERED = -3      # the broker got the confirm, or not: its answer did not come
    PC_CLOSED = -4          # the consumer was closed
    PC_SOUGHT = -5          # its partition is read from another place now


ctypedef struct TubeItem:   # one message
    int64_t id
    Slice attribute
    Slice body


ctypedef struct TubePack:
    int64_t users           # atomic: who holds it; the last one frees it
    int64_t outcome         # atomic: PackOutcome; it changes once
    int64_t code            # written before `outcome`
    int64_t hold            # number of the partition's hold; constant
    bint taken              # the application has it; guarded by the exchange's lock
    int64_t taken_us        # when that was; the same
    int64_t confirm_asked   # atomic: a confirm or a rollback was asked for
    int64_t offset          # where it begins; -1: not known.  This and all below: constant once it is handed out
    int64_t max_offset
    int64_t bytes           # of payloads, of all messages that came
    int64_t body_bytes      # of bodies, of the messages among `n`
    int64_t memory          # bytes of all its blocks
    int32_t n               # messages
    int32_t came            # messages of the answer; those that are not among `n` were skipped
    int32_t broken          # of them: with a wrong checksum
    uint8_t pair_mark       # between two attributes, and
    uint8_t sign_mark       # between a name and its value, in the text of a message's attributes
    TubePack* next          # in the list that it is in
    TubeItem* items         # owned
    uint8_t* block          # owned, the bytes are in there; NULL: they are somebody's who outlives it


cdef int tubepack_read(
    Slice data, uint8_t* block, const Slice* filters, int n_filters, Got* got, TubePack** out) noexcept nogil
cdef void tubepack_hold(TubePack* p) noexcept nogil
cdef void tubepack_let_go(TubePack* p) noexcept nogil
