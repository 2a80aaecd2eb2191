"""Days and hours of a time, in the zone of the process."""

from libc.time cimport time_t, tm


cdef extern from "<time.h>" nogil:
    tm* localtime_r(const time_t* seconds, tm* out)
