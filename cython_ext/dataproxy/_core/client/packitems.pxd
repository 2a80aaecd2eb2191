"""The caller's ids of a settled pack."""

from dataproxy._core.base.pack cimport Pack


cdef void pack_keep_ids(Pack* p) noexcept nogil
cdef list pack_own_ids(Pack* p)
