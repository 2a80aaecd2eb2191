"""Answers to calls of control, and orders of the threads that answer them, out of the inbox of a server loop."""

from dataproxy._core.server.calls cimport Call
from dataproxy._core.server.state cimport ServerLoop


cdef void calls_settle(ServerLoop* d, Call* chain) noexcept nogil
