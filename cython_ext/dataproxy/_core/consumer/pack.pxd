"""Packs and their messages, as Python sees them."""

from libc.stdint cimport uint32_t

from dataproxy._core.consumer.tubepack cimport TubeItem, TubePack


cdef class Pack:
    cdef TubePack* pack             # one use
    cdef readonly str topic
    cdef readonly str partition     # its key, ``broker:topic:partition``
    cdef object consumer
    cdef uint32_t generation

    @staticmethod
    cdef Pack make(TubePack* pack, object consumer, str topic, str partition)


cdef class Record:
    cdef Pack owner
    cdef readonly int index

    cdef TubeItem* item(self)
