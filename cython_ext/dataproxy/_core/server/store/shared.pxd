"""One LMDB environment for each store directory of this process, shared by writer and readers."""

from dataproxy._core.server.store.env cimport StoreEnv


cdef class SharedEnv:
    cdef StoreEnv env
    cdef readonly bytes path        # of the directory
    cdef readonly bint read_only
    cdef int _pid
    cdef object __weakref__


cdef SharedEnv shared_env(str path, bint create, size_t map_bytes)
cdef object store_fault(int error, str path, str doing)
cdef object entry_fault(str path, str topic, unsigned int partition, unsigned long long offset)
cdef int prepare_directory(str path, bint create) except -1
