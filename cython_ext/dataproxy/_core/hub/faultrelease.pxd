"""Undoing of faults: replies whose time has come, sessions whose rule is gone, everything when the hub stops."""

from dataproxy._core.hub.doorstate cimport Door


cdef void release_due(Door* d) noexcept nogil
cdef void release_obsolete(Door* d) noexcept nogil      # after rules were taken out
cdef void release_all(Door* d) noexcept nogil
