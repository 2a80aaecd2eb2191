"""The V1 wire's table of functions."""

from dataproxy._core.wire.api cimport WireOps


cdef const WireOps* inlongv1_ops() noexcept nogil
