"""Registrations as Python's control calls see them."""

from libc.stdint cimport int32_t, int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.net.poller cimport Wakeup
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t
from dataproxy._core.server.store.core cimport StoreCore
from dataproxy._core.server.tubemq.broker cimport Claim, Confirmed, TubeBroker
from dataproxy._core.server.tubemq.registrations cimport Registrations


ctypedef struct Sent:           # positions that calls of control have sent to the store
    pthread_mutex_t mutex       # guards the next three
    pthread_cond_t cond
    int64_t under_way
    int64_t failed


cdef class RegistrationsCore:
    cdef Registrations table
    cdef TubeBroker broker
    cdef Sent sent
    cdef StoreCore store        # None: nothing is kept

    cdef list _rows(self, const Slice* only, int64_t before_us)
    cdef int join(self, int number, Wakeup* wakeup) except -1
    cdef int _store(self, bytes group, bytes topic, int32_t partition, const Confirmed* what) except -1
