"""Retry budget: bounds resends without success, so that they do not overload a cluster that already has problems."""

from libc.stdint cimport int64_t

cdef enum:
    BUDGET_BURST = 256      # resends that may be under way without any success
    BUDGET_FLOOR = 10       # resends a second that are always allowed


ctypedef struct RetryBudget:    # executor only
    int64_t tokens          # thousandths of a resend
    int64_t share           # thousandths of a resend that each delivered frame earns
    int64_t refilled_us


cdef void budget_open(RetryBudget* b, int64_t share) noexcept nogil
cdef bint budget_take(RetryBudget* b, int64_t now_us) noexcept nogil
cdef void budget_earn(RetryBudget* b, bint resent) noexcept nogil
