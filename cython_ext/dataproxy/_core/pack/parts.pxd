"""The parts of a pack that was refused for a fault of some message and sent again in parts."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf

cdef enum:
    HALVES = 20                 # right halves that wait: one for each halving of 65535 messages, and some


ctypedef struct Part:           # neighbouring messages of a pack with the same result
    uint32_t first              # place in the pack
    uint32_t n
    int outcome                 # Outcome of pack/pack
    int code
    int attempts                # times that these messages were written
    int refused                 # code of their last refusal, 0 without one; `text` belongs to it
    bint maybe_delivered
    uint32_t node               # where it begins in `texts`
    uint32_t text
    int64_t bytes               # of these messages when the pack was sealed


ctypedef struct Half:           # messages that are still to be sent
    uint32_t first
    uint32_t n
    int attempts                # times that they were written
    bint maybe                  # an earlier frame with these messages may be stored


ctypedef struct Parts:
    int64_t refs                # atomic
    # Results, from the first message on; constant once the pack is settled.
    Part* done
    uint32_t n_done
    uint32_t cap
    Buf texts                   # each ends with NUL; the first one is empty
    # The rest belongs to the executor, and its memory is released when the pack is settled: conn/split.
    bint ready                  # else it waits for memory to be split
    Half now                    # on its way
    int before                  # attempts of the pack when the split began
    Half halves[20]             # behind it, the last one first
    int n_halves
    uint32_t number             # of the pack itself
    uint32_t* ends              # for each message: where it ended among the sealed items, and where it ends now
    uint8_t* saved              # bytes that the frame of `now` overwrites: before its items, and behind them
    bint framed                 # `saved` is in use
    int64_t extra               # bytes by which the items have grown


cdef Parts* parts_new() noexcept nogil
cdef Parts* parts_keep(Parts* x) noexcept nogil
cdef void parts_release(Parts* x) noexcept nogil
cdef void parts_idle(Parts* x) noexcept nogil
cdef bint parts_room(Parts* x) noexcept nogil
cdef void parts_enter(Parts* x, const Part* part, const char* node, const char* text) noexcept nogil
cdef const Part* parts_find(const Parts* x, uint32_t place) noexcept nogil
cdef int64_t parts_messages(const Parts* x, int outcome) noexcept nogil
