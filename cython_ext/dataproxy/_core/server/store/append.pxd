"""The durable store as the committer sees it."""

from dataproxy._core.server.entries cimport StoreOps


cdef const StoreOps* store_ops() noexcept nogil     # the store argument is a Store*
