"""Arrivals of a plan, one after the other.

The rates are seen as one curve that grows: the number of arrivals that are due up to a moment.  Equal gaps are steps of
one along this curve; a Poisson process takes steps of random length with mean one.  So every form of the rate serves
both.

Locality: one thread, the owner of the plan.  Locks: none.
"""

from libc.math cimport log, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.rand cimport rand_next
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK

cdef enum:
    WARM_UP = 16                # first random numbers that are not used: similar seeds give similar ones


cdef double ROUNDING = 1e-6     # of an arrival: sums of rates are not exact


cdef int plan_open(Plan* plan, int n, bint poisson, uint64_t seed) noexcept nogil:
    """Make room for ``n`` pieces; ST_OK or ST_NO_MEMORY."""
    cdef int _i
    memset(plan, 0, sizeof(Plan))
    plan.pieces = <Piece*>calloc(<size_t>n, sizeof(Piece))
    plan.n = n
    plan.poisson = poisson
    plan.random = seed * <uint64_t>0x9E3779B97F4A7C15 + 1
    for _i in range(WARM_UP):
        rand_next(&plan.random)
    return ST_OK if plan.pieces != NULL else ST_NO_MEMORY


cdef void plan_close(Plan* plan) noexcept nogil:
    """Release the pieces.  Locality: the last user."""
    free(plan.pieces)
    plan.pieces = NULL


cdef inline double _arrivals(const Piece* p) noexcept nogil:
    return p.jump + (p.rate_begin + p.rate_end) / 2.0 * p.seconds


cdef void plan_piece(Plan* plan, int i, double seconds, double begin, double end, double jump) noexcept nogil:
    """Fill piece ``i``, the ones before it come first."""
    cdef Piece* p = &plan.pieces[i]
    p.seconds = seconds
    p.rate_begin = begin
    p.rate_end = end
    p.jump = jump
    if i > 0:
        p.begin_s = plan.pieces[i - 1].begin_s + plan.pieces[i - 1].seconds
        p.before = plan.pieces[i - 1].before + _arrivals(&plan.pieces[i - 1])


cdef double plan_total(const Plan* plan) noexcept nogil:
    """Return how many arrivals are due by the rates; drawn gaps give about as many."""
    cdef const Piece* last = &plan.pieces[plan.n - 1]
    return last.before + _arrivals(last)


cdef inline double _step(Plan* plan) noexcept nogil:
    if not plan.poisson:
        return 1.0
    return -log(1.0 - <double>(rand_next(&plan.random) >> 11) / 9007199254740992.0)


cdef void plan_begin(Plan* plan, double phase) noexcept nogil:
    """Go to the beginning of the plan; the part ``phase`` (0 to 1) of the first step is already over."""
    plan.at = 0
    plan.next = _step(plan) if plan.poisson else phase


cdef double _moment(const Piece* p, double arrivals) noexcept nogil:
    """Return the seconds from the beginning of a piece until ``arrivals`` of its own arrivals are due."""
    cdef double slope, root
    arrivals -= p.jump
    if arrivals <= 0.0:
        return 0.0
    slope = (p.rate_end - p.rate_begin) / p.seconds
    root = sqrt(max(p.rate_begin * p.rate_begin + 2.0 * slope * arrivals, 0.0))
    return min(2.0 * arrivals / (p.rate_begin + root), p.seconds)


cdef int64_t plan_next(Plan* plan) noexcept nogil:
    """Return when the next arrival is due, in microseconds since the start, -1 behind the last one."""
    cdef Piece* p = &plan.pieces[plan.at]
    cdef double due
    while plan.next + ROUNDING >= p.before + _arrivals(p):
        if plan.at == plan.n - 1:
            return -1
        plan.at += 1
        p = &plan.pieces[plan.at]
    due = p.begin_s + _moment(p, plan.next - p.before)
    plan.next += _step(plan)
    return <int64_t>(due * 1e6)
