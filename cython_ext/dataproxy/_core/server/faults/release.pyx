"""Release of replies and sessions that faults hold back.

Locality: server loop.  Locks: none, except where a function says otherwise.
"""

from libc.stdlib cimport free

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.server.receive cimport loop_reread
from dataproxy._core.server.state cimport close_session, mark_dirty
from dataproxy._core.server.faults.table cimport Held, faults_has
from dataproxy._core.server.faults.misbehaviour cimport give_reply, give_reversed
from dataproxy._core.server.session cimport (
    CLOSE_MEMORY, CLOSE_RESET, HOLD_FROZEN, HOLD_SLOW, Session, table_find, table_touch,
)
from dataproxy._core.net.poller cimport POLL_READ, poller_add
from dataproxy._core.plat.assertion cimport dp_assert


cdef void release_due(ServerLoop* d) noexcept nogil:
    """Send delayed replies that are due, and read slow sessions again."""
    cdef Held* held
    while d.delayed != NULL and d.delayed.due_us <= d.now_us:
        held = d.delayed
        d.delayed = held.next
        _release(d, held)


cdef void _release(ServerLoop* d, Held* held) noexcept nogil:
    """Send the reply of one block, or read its session again."""
    cdef Session* s = table_find(&d.table, held.session)
    if s == NULL:
        free(held)
    elif held.n == 0:
        free(held)
        s.hold &= ~(<int>HOLD_SLOW)
        mark_dirty(d, s)
    else:
        dp_assert(s.pending > 0, "a reply that is let go was held back: pending=%ld", s.pending)
        s.pending -= 1
        table_touch(&d.table, s, d.now_us)      # it waited for the hub
        if give_reply(d, s, held) != ST_OK:
            close_session(d, s, CLOSE_MEMORY)


cdef void release_obsolete(ServerLoop* d) noexcept nogil:
    """Thaw sessions and send collected replies whose rule is no longer in the table.

    Locks: takes FaultTable.mutex.
    """
    cdef Session* following = d.table.idle_first
    cdef Session* s
    while following != NULL:
        s = following
        following = s.idle_next
        if s.faults == NULL:
            continue
        if s.faults.reversed != NULL and not faults_has(d.shared.faults, s.faults.reversed_by):
            give_reversed(d, s)
        if s.closed:
            continue
        if s.faults.frozen_by != 0 and not faults_has(d.shared.faults, s.faults.frozen_by):
            _thaw(d, s)
        if following != NULL and following.closed:  # serving s may have closed it, to free memory
            following = d.table.idle_first


cdef void _thaw(ServerLoop* d, Session* s) noexcept nogil:
    """Continue a frozen session: first serve the frames that were received before."""
    s.faults.frozen_by = 0
    s.faults.mute = False
    s.hold &= ~(<int>HOLD_FROZEN)
    table_touch(&d.table, s, d.now_us)
    if s.faults.deaf:
        s.faults.deaf = False
        s.interest = POLL_READ
        if poller_add(&d.poller, &s.transport, <void*>s.id, POLL_READ) != ST_OK:
            close_session(d, s, CLOSE_RESET)
            return
    mark_dirty(d, s)
    loop_reread(d, s)


cdef void release_all(ServerLoop* d) noexcept nogil:
    """Send everything that is held back; frozen sessions may be written to, but are not read any more."""
    cdef Session* s = d.table.idle_first
    cdef Held* held
    while d.delayed != NULL:
        held = d.delayed
        d.delayed = held.next
        _release(d, held)
    while s != NULL:
        if s.faults != NULL:
            s.faults.mute = False
            give_reversed(d, s)
            mark_dirty(d, s)
        s = s.idle_next
