"""Facade of the table of faults."""

from dataproxy._core.hub.faults cimport FaultTable


cdef class FaultCore:
    cdef FaultTable table
