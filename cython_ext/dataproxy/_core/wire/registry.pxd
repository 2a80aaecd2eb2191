"""The wires by the families of frames that they make."""

from dataproxy._core.wire.api cimport WireOps


cdef const WireOps* wire_of_family(int family) noexcept nogil
cdef const WireOps* wire_of_server() noexcept nogil
cdef const WireOps* wire_of_reports() noexcept nogil
cdef const WireOps* wire_of_queue() noexcept nogil
