"""Bodies that a pack does not copy: large ones, which are sent from where they lie.

The pack's own bytes have a *gap* where such a body belongs, and its owner, a Python object, is kept alive by a
reference.  Only a thread that holds the GIL can give a reference back, so the references of finished packs are
collected in their pool (`pack`) until one comes by (`producer/ingest/owners`).  All code but the send queue reads a
pack without gaps: `pack_solid` copies the bodies first.

Locality: owner of the pack.  Locks: none.
"""

from libc.stdint cimport uint8_t, uint32_t


ctypedef struct HeldBody:
    const uint8_t* p
    size_t n
    size_t at               # how many of the pack's own items bytes come before it
    void* owner             # a Python object; one reference


ctypedef struct Held:       # followed by its bodies
    Held* next              # in a pool's list of what can be given back
    uint32_t n              # bodies
    uint32_t room
    uint32_t gaps           # n, or 0 when their bytes were copied into the pack
    size_t bytes            # that are not in the pack's buffer: of all bodies while there are gaps, then 0


cdef int held_reserve(Held** held) noexcept nogil

cdef inline HeldBody* held_bodies(const Held* held) noexcept nogil:
    """Return the first body."""
    return <HeldBody*>(held + 1)


cdef inline void held_add(Held* held, const uint8_t* p, size_t n, size_t at, void* owner) noexcept nogil:
    """Add a body for which `held_reserve` has made room; takes over the caller's reference to ``owner``."""
    cdef HeldBody* body = held_bodies(held) + held.n
    body.p = p
    body.n = n
    body.at = at
    body.owner = owner
    held.n += 1
    held.gaps = held.n
    held.bytes += n
