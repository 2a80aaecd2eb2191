"""End of faults: delayed replies that are due, sessions whose rule was removed, everything when the hub stops."""

from dataproxy._core.server.state cimport Door


cdef void release_due(Door* d) noexcept nogil
cdef void release_obsolete(Door* d) noexcept nogil      # after rules were taken out
cdef void release_all(Door* d) noexcept nogil
