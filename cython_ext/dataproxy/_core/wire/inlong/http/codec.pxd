"""HTTP report as a wire: its table of functions."""

from dataproxy._core.wire.api cimport WireOps


cdef const WireOps* http_ops() noexcept nogil
