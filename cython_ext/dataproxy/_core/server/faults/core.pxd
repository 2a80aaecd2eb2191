"""Facade of the table of faults."""

from dataproxy._core.server.faults.table cimport FaultTable


cdef class FaultCore:
    cdef FaultTable table
