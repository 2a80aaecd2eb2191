"""The table of functions that is the InLong DataProxy wire."""

from dataproxy._core.wire.api cimport WireOps


cdef const WireOps* inlong_ops() noexcept nogil
