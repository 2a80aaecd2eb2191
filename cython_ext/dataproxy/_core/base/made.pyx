"""Makes the object that only compiled code has: no attribute of a module holds it.

Locality: GIL.  Locks: none.
"""

__all__ = []

cdef object BY_CORE = object()
cdef tuple CORE_ARGS = (BY_CORE,)
