"""Token bucket for resends.

A resend takes a token.  Every delivered frame earns a share of one, a delivered resend gives its own back, and
a slow drip comes with time.  So resends that succeed cost nothing, and what is lost to resends that fail is a
share of the successes plus the drip.
"""

from libc.stdint cimport int64_t

cdef enum:
    ONE = 1000
    SECOND_US = 1000000


cdef void budget_open(RetryBudget* b, int64_t share) noexcept nogil:
    """Fill the bucket; ``share`` is in thousandths.  Locality: the executor's creator.  Locks: none."""
    b.tokens = BUDGET_BURST * ONE
    b.share = share
    b.refilled_us = 0


cdef bint budget_take(RetryBudget* b, int64_t now_us) noexcept nogil:
    """Take a token for one resend; False when there is none.  Locality: executor.  Locks: none."""
    cdef int64_t drip = (now_us - b.refilled_us) * (BUDGET_FLOOR * ONE) // SECOND_US if b.refilled_us else 0
    if drip > 0 or b.refilled_us == 0:
        b.tokens = min(b.tokens + drip, <int64_t>(BUDGET_BURST * ONE))
        b.refilled_us = now_us
    if b.tokens < ONE:
        return False
    b.tokens -= ONE
    return True


cdef void budget_earn(RetryBudget* b, bint resent) noexcept nogil:
    """Enter one delivered frame; ``resent``: it took tokens before.  Locality: executor.  Locks: none."""
    b.tokens = min(b.tokens + b.share + (ONE if resent else 0), <int64_t>(BUDGET_BURST * ONE))
