"""Histogram of microseconds with three significant digits, up to 19 hours; percentiles as HdrHistogram gives them.

Locality: GIL, any thread.  Locks: none.
"""

cimport cython
from libc.stdint cimport int64_t

from dataproxy._core.base.hdr cimport (
    HDR_SLOTS, hdr_above, hdr_add, hdr_bound, hdr_clear, hdr_close, hdr_merge, hdr_open, hdr_percentile,
)
from dataproxy._core.base.status cimport ST_OK

__all__ = ["Histogram"]


@cython.final
cdef class Histogram:
    """Count values by size, each to within 0.1 %. It takes 220 KB for any number of values.

    Values are microseconds here, but may be any integers from 0 to 2^36.  Calls hold the interpreter's lock, so any
    thread may make them.
    """

    def __cinit__(self):
        if hdr_open(&self.hdr) != ST_OK:
            raise MemoryError("no memory for a histogram")

    def __dealloc__(self):
        hdr_close(&self.hdr)

    @classmethod
    def of_counts(cls, counts):
        """Return the histogram of pairs (value, how many), such as ``counts`` gives."""
        cdef Histogram out = Histogram()
        for value, times in counts:
            out.record(value, times)
        return out

    def record(self, int64_t value, int64_t times=1):
        """Count ``value`` this many times; a negative value counts as 0, a value beyond the largest slot in that slot.

        Raises ValueError for a negative number of times.
        """
        if times < 0:
            raise ValueError(f"times is 0 or more, not {times}")
        if times:
            hdr_add(&self.hdr, value, times)

    def merge(self, Histogram other not None):
        """Count all values of ``other`` here, too."""
        hdr_merge(&self.hdr, &other.hdr)

    def clear(self):
        """Forget all values."""
        hdr_clear(&self.hdr)

    def percentile(self, double percent):
        """Return the value at ``percent``, None without any; it is too large by 0.1 % at most, never too small."""
        cdef int64_t found = hdr_percentile(&self.hdr, percent)
        return None if found < 0 else found

    def above(self, int64_t value):
        """Return how many values are larger than ``value`` by more than the slot's width."""
        return hdr_above(&self.hdr, value)

    def counts(self):
        """Return pairs (largest value of a slot, how many) of all slots that hold any, in their order."""
        cdef int slot
        return [(hdr_bound(slot), self.hdr.counts[slot]) for slot in range(HDR_SLOTS) if self.hdr.counts[slot]]

    def __len__(self):
        return self.hdr.n

    @property
    def least(self):
        """Return the smallest value, None without any."""
        return self.hdr.least if self.hdr.n else None

    @property
    def largest(self):
        """Return the largest value as it was recorded, None without any."""
        return self.hdr.largest if self.hdr.n else None

    @property
    def mean(self):
        """Return the mean of all values, None without any."""
        return self.hdr.total / self.hdr.n if self.hdr.n else None

    @property
    def beyond(self):
        """Return how many values were too large for the largest slot."""
        return self.hdr.beyond

    def __repr__(self):
        return f"<Histogram of {self.hdr.n} values>"
