# distutils: define_macros=DATAPROXY_DEBUG=1
"""Assertions, compiled in every profile: the macro is on in this module alone."""

from libc.string cimport memset

from dataproxy._core.pack.pack cimport (
    PK_BACKOFF, PK_HELD, PK_IN_FLIGHT, PK_OPEN, PK_POSTED, PK_QUEUED, PK_SETTLED, PK_TAKEN, PK_WAITING, Pack,
    pack_after, pack_enter, pack_state_name,
)
from dataproxy._core.plat.assertion cimport DP_CHECKED, dp_assert

__all__ = ["STATES", "enter", "is_checked", "may_follow", "require"]

STATES = {
    pack_state_name(state).decode(): state for state in (
        PK_OPEN, PK_POSTED, PK_WAITING, PK_QUEUED, PK_IN_FLIGHT, PK_BACKOFF, PK_SETTLED, PK_HELD, PK_TAKEN)
}


def is_checked() -> bool:
    """Return whether this module was compiled with assertions."""
    return DP_CHECKED


def may_follow(int state) -> set:
    """Return the states of a pack that may follow this one."""
    return {other for other in STATES.values() if (pack_after(state) >> other) & 1}


def enter(int state, int following) -> int:
    """Have a pack change its state, and return what it is then; the process ends if the change is illegal."""
    cdef Pack pack
    memset(&pack, 0, sizeof(Pack))
    pack.state = state
    pack.seq = 7
    pack.count = 3
    pack_enter(&pack, following)
    return pack.state


def require(int count, int most) -> None:
    """Assert that ``count`` is at most ``most``."""
    dp_assert(count <= most, "count <= most: count=%d, most=%d", count, most)
