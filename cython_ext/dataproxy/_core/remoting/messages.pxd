"""Messages that were pulled, as applications see them."""

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.rocketmq.stored cimport StoredMessage


cdef class ReceivedMessage:
    cdef bytes data             # the answer that the message lies in
    cdef StoredMessage at
    cdef readonly str broker

    cdef object text_of(self, Slice name)


cdef list messages_of(Slice stored, str broker, Py_ssize_t* broken)
