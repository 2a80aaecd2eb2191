"""Results as Python values, made without a call of a Python class: many are made at once."""

from libc.stdint cimport uint32_t

from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.handle cimport CoreHandle


cdef tuple fields_once(CoreHandle core, PackResult* v, uint32_t place)
cdef object new_success(tuple fields, uint32_t position, object own_id)
