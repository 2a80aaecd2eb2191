"""Packs and their messages, as Python sees them."""

from dataproxy._core.consumer.tubepack cimport TubeItem, TubePack


cdef class Pack:
    cdef TubePack* pack             # one use
    cdef readonly str topic
    cdef readonly str partition     # its key, ``broker:topic:partition``
    cdef readonly bint done         # the application has asked for its confirm, whatever became of that
    cdef object consumer
    cdef object data                # that a pack without a block of its own lies in
    cdef dict faults                # number of a message -> why its body cannot be read; None: all can

    cdef int check_bodies(self) except -1

    @staticmethod
    cdef Pack make(TubePack* pack, object consumer, str topic, str partition)


cdef class Record:
    cdef Pack owner
    cdef readonly int index

    cdef TubeItem* item(self)
