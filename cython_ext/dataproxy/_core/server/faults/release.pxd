"""End of faults: delayed replies that are due, sessions whose rule was removed, everything when the hub stops."""

from dataproxy._core.server.state cimport ServerLoop


cdef void release_due(ServerLoop* d) noexcept nogil
cdef void release_obsolete(ServerLoop* d) noexcept nogil      # after rules were taken out
cdef void release_all(ServerLoop* d) noexcept nogil
