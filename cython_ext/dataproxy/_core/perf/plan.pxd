"""Plan of an open loop: when each message is due, whatever became of those before it."""

from libc.stdint cimport int64_t, uint64_t


ctypedef struct Piece:          # a span of time in which the rate changes evenly from one value to another
    double begin_s              # since the start of the run
    double seconds
    double rate_begin           # arrivals a second
    double rate_end
    double jump                 # arrivals that are all due at its first moment
    double before               # arrivals that are due before it


ctypedef struct Plan:           # guarded by its owner: one thread
    Piece* pieces               # owned
    int n
    int at                      # the piece of the next arrival
    bint poisson                # gaps are drawn; else they are equal, where the rate is
    uint64_t random
    double next                 # how many arrivals lie before the next one, by the rates; fractions count


cdef int plan_open(Plan* plan, int n, bint poisson, uint64_t seed) noexcept nogil
cdef void plan_close(Plan* plan) noexcept nogil
cdef void plan_piece(Plan* plan, int i, double seconds, double begin, double end, double jump) noexcept nogil
cdef void plan_begin(Plan* plan, double phase) noexcept nogil
cdef int64_t plan_next(Plan* plan) noexcept nogil
cdef double plan_total(const Plan* plan) noexcept nogil
