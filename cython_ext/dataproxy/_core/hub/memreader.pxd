"""Reading the store in memory."""

from dataproxy._core.hub.reader cimport ReaderOps


cdef const ReaderOps* memory_reader() noexcept nogil    # the store argument is a MemStore*
