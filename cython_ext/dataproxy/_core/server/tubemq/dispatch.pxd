"""Requests that are not for the store: who answers them."""

from libc.stdint cimport uint32_t

from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.wire.api cimport Request


cdef void call_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil
cdef void call_fail(ServerLoop* d, Session* s, uint32_t serial, const char* name, const char* words) noexcept nogil
