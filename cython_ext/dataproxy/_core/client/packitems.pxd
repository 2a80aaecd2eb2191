"""Items of a settled pack as Python values."""

from dataproxy._core.base.pack cimport Pack


cdef list pack_own_ids(Pack* p)
