"""A pack gets its result, and the one hook by which the layer above takes packs that have theirs.

Locality: the owner of the packs.  Locks: those that the hook's function takes.
"""

from dataproxy._core.pack.pack cimport OUT_PENDING, PK_SETTLED, Pack, PackList, pack_enter
from dataproxy._core.plat.assertion cimport dp_assert


ctypedef struct SettledHook:    # constant
    void* context
    void (*take)(void* context, PackList* packs) noexcept nogil     # takes all of them


cdef inline void settled_mark(Pack* p, int outcome, int code) noexcept nogil:
    """Give a pack its final result; ``outcome`` is an Outcome."""
    dp_assert(p.outcome == OUT_PENDING, "a pack gets one result: outcome=%d, then %d, seq=%u",
              p.outcome, outcome, p.seq)
    p.outcome = outcome
    p.code = code
    pack_enter(p, PK_SETTLED)


cdef inline void settled_tell(const SettledHook* hook, PackList* packs) noexcept nogil:
    """Hand over packs that have their result, if there are any."""
    if packs.head != NULL:
        hook.take(hook.context, packs)
