"""Arrivals of a plan without a run, for tests."""

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.perf.plan cimport Plan, plan_begin, plan_close, plan_next, plan_open, plan_piece

__all__ = ["arrivals"]


def arrivals(list pieces, *, bint poisson=False, unsigned long long seed=0, double phase=0.0):
    """Return when the arrivals of pieces (seconds, rate, rate at the end, jump) are due, in microseconds."""
    cdef Plan plan
    cdef int i
    out = []
    if plan_open(&plan, <int>len(pieces), poisson, seed) != ST_OK:
        raise MemoryError
    try:
        for i, (seconds, begin, end, jump) in enumerate(pieces):
            plan_piece(&plan, i, seconds, begin, end, jump)
        plan_begin(&plan, phase)
        due = plan_next(&plan)
        while due >= 0:
            out.append(due)
            due = plan_next(&plan)
    finally:
        plan_close(&plan)
    return out
