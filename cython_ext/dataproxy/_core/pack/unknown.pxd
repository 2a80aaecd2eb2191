"""What executors note about a stream whose name servers do not know (yet).

Locality: any thread; every field is atomic.  Locks: none.
"""

from libc.stdint cimport int64_t


cdef enum:
    PROBE_FREE = 0          # `Unknown.probe_us` while nothing says that the stream is unknown


ctypedef struct Unknown:    # of one stream; it lives as long as the stream
    int64_t packs           # packs that were refused because of it and have no result
    int64_t probe_us        # until then none of them is sent again: one at a time asks; PROBE_FREE: all may be sent
    int64_t probes          # how often one was sent to ask, since the stream was last known
