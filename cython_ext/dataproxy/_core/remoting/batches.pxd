"""Batches of messages that a listener is called with."""


cdef class Batches:
    cdef object listener
    cdef list messages
    cdef Py_ssize_t size
    cdef Py_ssize_t begun           # where the batch that was begun last begins
    cdef readonly Py_ssize_t at     # where it ends
