"""Load window of a proxy: 30 samples, weighted by age with the newest heaviest.

The weights are those of the first C++ SDK (specification 6.1): 1 for the five oldest, then 2, 3, 6, 12,
and 48, 96, 192, 384, 1000 for the five newest; their sum is 1840.  That SDK binds the weights to slots of
the ring, so that after one turn the newest sample can weigh 1 and slot 29 dominates for 30 heartbeats.
``load_average`` binds them to ages, which is what the weights are meant for; ``load_average_by_slot`` is
kept to compare with the ancestor's figures.  Both average over samples above zero, as the ancestor does.
"""

from libc.stdint cimport int64_t

cdef int[30] WEIGHTS = [
    1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 6, 6, 6, 6, 6, 12, 12, 12, 12, 12, 48, 96, 192, 384, 1000,
]


cdef void load_clear(LoadWindow* w) noexcept nogil:
    """Forget all samples (a new connection).  Locality: executor.  Locks: none."""
    cdef int i
    for i in range(LOAD_WINDOW):
        w.samples[i] = LOAD_UNKNOWN
    w.total = 0


cdef void load_add(LoadWindow* w, int load) noexcept nogil:
    """Take the load of one heartbeat answer; LOAD_UNKNOWN keeps its place in time.

    Locality: executor.
    Locks: none.
    """
    w.samples[w.total % LOAD_WINDOW] = load
    w.total += 1


cdef int load_average(const LoadWindow* w) noexcept nogil:
    """Return the average by age: LOAD_UNKNOWN without a known sample, 0 if all known ones are 0.

    Locality: executor.  Locks: none.  ``sum(load * weight) / sum(weight)`` over samples above zero; while
    fewer than 30 have come, the newest still weighs 1000, the one before it 384, and so on.
    """
    cdef int64_t weighted = 0, weights = 0, kept, age
    cdef int sample
    cdef bint known = False
    kept = w.total if w.total < LOAD_WINDOW else LOAD_WINDOW
    for age in range(kept):
        sample = w.samples[(w.total - 1 - age) % LOAD_WINDOW]
        if sample == LOAD_UNKNOWN:
            continue
        known = True
        if sample > 0:
            weighted += <int64_t>sample * WEIGHTS[LOAD_WINDOW - 1 - age]
            weights += WEIGHTS[LOAD_WINDOW - 1 - age]
    if not known:
        return LOAD_UNKNOWN
    return <int>(weighted // weights) if weights else 0


cdef int load_average_by_slot(const LoadWindow* w) noexcept nogil:
    """Return the ancestor's average, weights bound to slots of the ring; 0 without samples.

    Locality: executor.
    Locks: none.
    """
    cdef int64_t weighted = 0, weights = 0
    cdef int i
    for i in range(LOAD_WINDOW):
        if w.samples[i] > 0:
            weighted += <int64_t>w.samples[i] * WEIGHTS[i]
            weights += WEIGHTS[i]
    return <int>(weighted // weights) if weights else 0
