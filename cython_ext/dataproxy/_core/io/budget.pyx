"""Token bucket for resends.

A resend takes a token.  Every delivered frame adds a share of a token, and a delivered resend gives its token back.
BUDGET_FLOOR tokens are added each second.  So a resend that succeeds costs nothing, and resends that fail are
bounded by a share of the successes plus BUDGET_FLOOR a second.

Locks: none.
"""

from libc.stdint cimport int64_t

cdef enum:
    ONE = 1000
    SECOND_US = 1000000


cdef void budget_open(RetryBudget* b, int64_t share) noexcept nogil:
    """Fill the bucket; ``share`` is in thousandths.  Locality: the executor's creator."""
    b.tokens = BUDGET_BURST * ONE
    b.share = share
    b.refilled_us = 0


cdef bint budget_take(RetryBudget* b, int64_t now_us) noexcept nogil:
    """Take a token for one resend; False if there is none.  Locality: executor."""
    cdef int64_t drip = (now_us - b.refilled_us) * (BUDGET_FLOOR * ONE) // SECOND_US if b.refilled_us else 0
    if drip > 0 or b.refilled_us == 0:
        b.tokens = min(b.tokens + drip, <int64_t>(BUDGET_BURST * ONE))
        b.refilled_us = now_us
    if b.tokens < ONE:
        return False
    b.tokens -= ONE
    return True


cdef void budget_earn(RetryBudget* b, bint resent) noexcept nogil:
    """Count one delivered frame; ``resent``: it took a token before.  Locality: executor."""
    b.tokens = min(b.tokens + b.share + (ONE if resent else 0), <int64_t>(BUDGET_BURST * ONE))
