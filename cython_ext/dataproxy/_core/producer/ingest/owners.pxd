"""What keeps the memory of large bodies after the call: references that packs take, and that are given back."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport PackPool
from dataproxy._core.plat.atomic cimport relaxed_load
from dataproxy._core.producer.ingest.rows cimport RowOwners


cdef enum:
    HOLD_FROM = 4096        # bytes of a body: a copy costs more than a reference (docs/decisions/0021-held-bodies.md)


cdef object body_owner(object body)
cdef void owners_lease(RowOwners* owners, object owner, int64_t n) noexcept
cdef void owners_end(RowOwners* owners) noexcept
cdef void owners_release(PackPool* pool) noexcept


cdef inline void owners_give_back(PackPool* pool) noexcept:
    """Give back the references of finished packs, if there are any.  Locality: GIL.  Locks: may take the pool's."""
    if relaxed_load(&pool.returned_bytes):
        owners_release(pool)
