"""Requests of RocketMQ's clients: who answers them."""

from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.wire.api cimport Request


cdef void command_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil
