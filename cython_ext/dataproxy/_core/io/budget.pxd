"""Retry budget: resends without success are bounded, so that a cluster in trouble is not stormed."""

from libc.stdint cimport int64_t

cdef enum:
    BUDGET_BURST = 256      # resends that may be under way without any success
    BUDGET_FLOOR = 10       # resends a second that are always allowed


ctypedef struct RetryBudget:    # executor only
    int64_t tokens          # thousandths of a resend
    int64_t share           # thousandths earned by each delivered frame
    int64_t refilled_us


cdef void budget_open(RetryBudget* b, int64_t share) noexcept nogil
cdef bint budget_take(RetryBudget* b, int64_t now_us) noexcept nogil
cdef void budget_earn(RetryBudget* b, bint resent) noexcept nogil
