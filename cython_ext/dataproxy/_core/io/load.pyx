"""Load window of a proxy: 30 samples, weighted by age with the newest heaviest.

The weights are those of the first C++ SDK (specification 6.1): 1 for the five oldest, then 2, 3, 6, 12,
and 48, 96, 192, 384, 1000 for the five newest; their sum is 1840.  That SDK gives the weights to slots of
the ring.  So, once the ring is full, the newest sample may have weight 1, and slot 29 dominates for 30 heartbeats.
``load_average`` gives the weights by age, as intended; ``load_average_by_slot`` serves for comparison with the
C++ SDK.  Both use only samples above zero, as that SDK does.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

cdef int[30] WEIGHTS = [
    1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 6, 6, 6, 6, 6, 12, 12, 12, 12, 12, 48, 96, 192, 384, 1000,
]


cdef void load_clear(LoadWindow* w) noexcept nogil:
    """Forget all samples (a new connection)."""
    cdef int i
    for i in range(LOAD_WINDOW):
        w.samples[i] = LOAD_UNKNOWN
    w.total = 0


cdef void load_add(LoadWindow* w, int load) noexcept nogil:
    """Store the load of one heartbeat answer; LOAD_UNKNOWN takes a place too, so that older samples keep their age."""
    w.samples[w.total % LOAD_WINDOW] = load
    w.total += 1


cdef int load_average(const LoadWindow* w) noexcept nogil:
    """Return the average by age: LOAD_UNKNOWN without a known sample, 0 if all known ones are 0.

    The average is ``sum(load * weight) / sum(weight)`` over samples above zero.  With fewer than 30 samples, the
    newest still has weight 1000, the one before it 384, and so on.
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
    """Return the average as the first C++ SDK computes it, with weights by slot; 0 without samples."""
    cdef int64_t weighted = 0, weights = 0
    cdef int i
    for i in range(LOAD_WINDOW):
        if w.samples[i] > 0:
            weighted += <int64_t>w.samples[i] * WEIGHTS[i]
            weights += WEIGHTS[i]
    return <int>(weighted // weights) if weights else 0
