"""Giving up the names of logs and streams that have no entries, when room for new ones is wanted."""

from libc.stdint cimport uint64_t

from dataproxy._core.hub.storetxn cimport Store


cdef void names_make_room(Store* store, uint64_t wanted) noexcept nogil     # for so many new ones
