"""Calls of control as the hub's thread sees them."""

from dataproxy._core.server.calls cimport Call, CallQueue


cdef class CallsCore:
    cdef CallQueue queue


cdef class PendingCall:
    cdef Call* call             # NULL once it is answered
    cdef CallsCore calls

    cdef Call* _open(self) except NULL
    cdef int _fail(self, bytes name, bytes trace, int status) except -1
