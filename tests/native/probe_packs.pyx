"""Packs read by two server loops at once, one step at a time: what the second does while the first is reading.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport status_name
from dataproxy._core.server.store.visits cimport Visit, Visitor
from dataproxy._core.server.tubemq.core cimport RegistrationsCore
from dataproxy._core.server.tubemq.packs cimport PackCall, PackReader, pack_read, packs_free, packs_init
from dataproxy._core.server.tubemq.registrations cimport INDEX_BYTES
from dataproxy._core.wire.tubemq.get cimport GetRequest

__all__ = ["Loop"]

cdef Visitor real = NULL        # of the store that is visited
cdef object meanwhile = None    # called once, when a pack is read and not noted yet


cdef int _visit(void* store, Visit* v) noexcept nogil:
    cdef int status = real(store, v)
    with gil:
        _interrupt()
    return status


cdef void _interrupt() noexcept:
    global meanwhile
    what, meanwhile = meanwhile, None
    if what is not None:
        what()


cdef Slice _slice(bytes text):
    return slice_of(<const unsigned char*><const char*>text, <size_t>len(text))


cdef class Loop:
    """The reading part of one server loop."""

    cdef PackReader reader
    cdef RegistrationsCore core

    def __cinit__(self, RegistrationsCore core not None):
        global real
        self.core = core
        if core.broker.visit != _visit:
            real = core.broker.visit
            core.broker.visit = _visit
        packs_init(&self.reader)

    def __dealloc__(self):
        packs_free(&self.reader)

    def get(self, bytes client not None, bytes group not None, bytes topic not None, int32_t partition=0, *,
            bint manual=False, int64_t now_us=0, then=None):
        """Read a pack; return (status, code, first, messages, bytes of the frame).

        ``then`` is called before it is noted.
        """
        global meanwhile
        cdef GetRequest asked
        cdef PackCall x
        cdef Buf out
        cdef int status
        memset(&asked, 0, sizeof(GetRequest))
        memset(&x, 0, sizeof(PackCall))
        buf_init(&out)
        asked.client, asked.group, asked.topic = _slice(client), _slice(group), _slice(topic)
        asked.partition, asked.manual = partition, manual
        x.asked, x.out, x.now_us = &asked, &out, now_us
        meanwhile = then
        with nogil:
            status = pack_read(&self.core.broker, &self.reader, &x)
        try:
            return status_name(status).decode(), x.code, x.at // INDEX_BYTES, x.n, out.n
        finally:
            buf_free(&out)
