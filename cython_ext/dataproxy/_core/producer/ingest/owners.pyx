"""References to the Python objects in whose memory large bodies lie while packs send them from there.

A call makes the references under the GIL, packs take them without it, and what no pack took is given back at the end
of the call.  References of finished packs wait in the pool until a thread comes by that holds the GIL anyway: a call
that sends, a flush, or the dispatcher, which the engine wakes if nothing else is under way (`producer/engine`).

Locality: GIL.  Locks: none, except where a function says otherwise.
"""

from cpython.bytes cimport PyBytes_CheckExact
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free

from dataproxy._core.pack.held cimport Held, HeldBody, held_bodies
from dataproxy._core.pack.pack cimport pool_take_returned
from dataproxy._core.plat.bits cimport prefetch_write


cdef enum:
    AHEAD = 8               # owners


cdef object body_owner(object body):
    """Return the `bytes` object in which a body lies, or None: any other memory may change after the call."""
    if PyBytes_CheckExact(body):
        return body
    if type(body) is memoryview:
        base = body.obj
        if PyBytes_CheckExact(base):
            return base
    return None


cdef void owners_lease(RowOwners* owners, object owner, int64_t n) noexcept:
    """Make ``n`` references to the owner of all rows; ``owners_end`` gives back those that no pack took."""
    cdef int64_t _i
    owners.each = NULL
    owners.all = <void*>owner
    owners.left = n
    for _i in range(n):
        Py_INCREF(owner)


cdef void owners_end(RowOwners* owners) noexcept:
    """Give back the references to the owner of all rows that no pack took."""
    while owners.left > 0:
        owners.left -= 1
        Py_DECREF(<object>owners.all)


cdef void owners_release(PackPool* pool) noexcept:
    """Give back the references of finished packs.  Locks: takes the pool's, not while references are given back."""
    cdef Held* held = pool_take_returned(pool)
    cdef Held* following
    cdef const HeldBody* body
    cdef uint32_t i
    while held != NULL:
        following = held.next
        body = held_bodies(held)
        for i in range(held.n):
            if i + AHEAD < held.n:
                prefetch_write(body[i + AHEAD].owner)
            Py_DECREF(<object>body[i].owner)
        free(held)
        held = following
