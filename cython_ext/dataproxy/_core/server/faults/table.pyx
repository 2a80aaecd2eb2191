"""Matching, counting and combining of fault rules; making and releasing the state for a connection.

Locks: none, except where a function says otherwise.
"""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.rand cimport rand_next
from dataproxy._core.base.slice cimport slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport atomic_store
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef int faults_init(FaultTable* t) noexcept nogil:
    """Make an empty table.

    Locality: owner.
    """
    memset(t, 0, sizeof(FaultTable))
    return ST_OK if pthread_mutex_init(&t.mutex, NULL) == 0 else ST_NO_MEMORY


cdef void faults_free(FaultTable* t) noexcept nogil:
    """Release the rules.

    Locality: owner, when no other thread uses the table any more.
    """
    cdef int i
    for i in range(t.count):
        free(t.rules[i])
    t.count = 0
    pthread_mutex_destroy(&t.mutex)


cdef void _rearm(FaultTable* t) noexcept nogil:
    """Publish the points at which rules exist.  Locality: holder of mutex."""
    cdef int64_t armed = 0
    cdef int i
    for i in range(t.count):
        armed |= t.rules[i].points
    atomic_store(&t.armed, armed)


cdef int64_t faults_add(FaultTable* t, const FaultRule* rule) noexcept nogil:
    """Append a copy of a rule with fresh counters; return its id, -1 when the table is full, -2 without memory.

    Locality: any thread.
    Locks: takes mutex.
    """
    cdef FaultRule* own = <FaultRule*>malloc(sizeof(FaultRule))
    cdef int64_t id = -1
    if own == NULL:
        return -2
    own[0] = rule[0]
    own.seen = 0
    own.fired = 0
    pthread_mutex_lock(&t.mutex)
    if t.count < FAULTS_MOST:
        t.last_id += 1
        id = t.last_id
        own.id = id
        own.what.frozen_by = id
        own.what.reversed_by = id
        t.rules[t.count] = own
        t.count += 1
        _rearm(t)
    pthread_mutex_unlock(&t.mutex)
    if id < 0:
        free(own)
    return id


cdef bint faults_remove(FaultTable* t, int64_t id, int64_t* seen, int64_t* fired) noexcept nogil:
    """Take out a rule with its last counts; false when it was not there.

    Locality: any thread.
    Locks: takes mutex.
    """
    cdef int kept = 0
    cdef int before
    cdef int i
    pthread_mutex_lock(&t.mutex)
    before = t.count
    for i in range(t.count):
        if t.rules[i].id == id:
            seen[0] = t.rules[i].seen
            fired[0] = t.rules[i].fired
            free(t.rules[i])
        else:
            t.rules[kept] = t.rules[i]
            kept += 1
    t.count = kept
    _rearm(t)
    pthread_mutex_unlock(&t.mutex)
    return kept < before


cdef bint faults_has(FaultTable* t, int64_t id) noexcept nogil:
    """Tell whether the rule is in the table.

    Locality: any thread.
    Locks: takes mutex.
    """
    cdef int64_t seen = 0
    cdef int64_t fired = 0
    return faults_counts(t, id, &seen, &fired)


cdef bint faults_counts(FaultTable* t, int64_t id, int64_t* seen, int64_t* fired) noexcept nogil:
    """Read the counters of a rule; false when it is not there.

    Locality: any thread.
    Locks: takes mutex.
    """
    cdef bint found = False
    cdef int i
    pthread_mutex_lock(&t.mutex)
    for i in range(t.count):
        if t.rules[i].id == id:
            seen[0] = t.rules[i].seen
            fired[0] = t.rules[i].fired
            found = True
    pthread_mutex_unlock(&t.mutex)
    return found


cdef bint _matches(const FaultRule* rule, const FaultEvent* event) noexcept nogil:
    """Tell whether the rule applies to this event.  Locality: holder of mutex."""
    if rule.listener >= 0 and rule.listener != event.listener:
        return False
    if rule.connection > 0 and rule.connection != event.connection:
        return False
    if rule.has_group and not slice_equals(slice_of(rule.group, rule.group_n), event.group):
        return False
    return not rule.has_stream or slice_equals(slice_of(rule.stream, rule.stream_n), event.stream)


cdef bint _is_live(const FaultTable* t, int64_t id) noexcept nogil:
    """Tell whether a rule is in the table.  Locality: holder of mutex."""
    cdef int i
    for i in range(t.count):
        if t.rules[i].id == id:
            return True
    return False


cdef int _slot(const FaultTable* t, FaultTally* tally, int64_t id) noexcept nogil:
    """Return a rule's place in a tally; a new rule takes a place of a removed rule, of which there is always one.

    Locality: holder of mutex.
    """
    cdef int vacant = 0
    cdef int i
    for i in range(<int>FAULTS_MOST):
        if tally.id[i] == id:
            return i
    for i in range(<int>FAULTS_MOST):
        if not _is_live(t, tally.id[i]):
            vacant = i
            break
    tally.id[vacant] = id
    tally.seen[vacant] = 0
    return vacant


cdef int64_t _count(const FaultTable* t, FaultRule* rule, const FaultEvent* event) noexcept nogil:
    """Count one more event and return its number, of the connection's own with ``each``.

    Locality: holder of mutex.
    """
    cdef FaultTally* tally
    cdef int slot
    rule.seen += 1
    if not rule.each or event.tally == NULL:
        return rule.seen
    if event.tally[0] == NULL:
        event.tally[0] = <FaultTally*>calloc(1, sizeof(FaultTally))
    tally = event.tally[0]
    if tally == NULL:
        return rule.seen
    slot = _slot(t, tally, rule.id)
    tally.seen[slot] += 1
    return tally.seen[slot]


cdef bint _fires(const FaultTable* t, FaultRule* rule, const FaultEvent* event) noexcept nogil:
    """Count an event that matches and tell whether the rule fires at it.

    Locality: holder of mutex.
    """
    cdef int64_t number = _count(t, rule, event) - rule.after
    if number <= 0 or (rule.first > 0 and number > rule.first):
        return False
    if rule.every > 1 and number % rule.every != 0:
        return False
    if rule.share > 0 and rand_next(&rule.random) >= rule.share:
        return False
    if rule.times > 0 and rule.fired >= rule.times:
        return False
    rule.fired += 1
    return True


cdef void _merge(FaultWhat* out, const FaultWhat* what) noexcept nogil:
    """Add one rule's actions; if two rules have the same action, the later rule's is used.

    Locality: any thread.
    """
    out.actions |= what.actions
    if what.actions & DO_REFUSE:
        out.code = what.code
        out.text_n = what.text_n
        memcpy(out.text, what.text, what.text_n)
        out.text[what.text_n] = 0
    if what.actions & DO_LOAD:
        out.load = what.load
    if what.actions & DO_COPIES:
        out.copies = what.copies
    if what.actions & DO_REVERSE:
        out.batch = what.batch
        out.reversed_by = what.reversed_by
    if what.actions & DO_CLOSE:
        out.stage = what.stage
        out.reset = what.reset
    if what.actions & DO_FREEZE:
        out.side = what.side
        out.frozen_by = what.frozen_by
    if what.actions & DO_FOREIGN:
        out.number = what.number
    if what.actions & DO_CORRUPT:
        out.corrupt_at = what.corrupt_at
        out.mask = what.mask
    if what.actions & DO_DELAY:
        out.delay_us = what.delay_us
    if what.actions & DO_GARBAGE:
        out.garbage_n = what.garbage_n
        memcpy(out.garbage, what.garbage, what.garbage_n)


cdef bint faults_judge(FaultTable* t, int point, const FaultEvent* event, FaultWhat* out) noexcept nogil:
    """Ask every rule of a point.

    Locality: server loop.
    Locks: takes mutex.
    """
    cdef FaultRule* rule
    cdef int i
    out.actions = 0
    pthread_mutex_lock(&t.mutex)
    for i in range(t.count):
        rule = t.rules[i]
        if rule.points & point and _matches(rule, event) and _fires(t, rule, event):
            _merge(out, &rule.what)
    pthread_mutex_unlock(&t.mutex)
    return out.actions != 0


cdef bint _is_from(const FaultSeen* seen, const FaultEvent* event) noexcept nogil:
    """Tell whether a number came over this connection.  Locality: holder of mutex."""
    return seen.listener == event.listener and seen.connection == event.connection


cdef void faults_note(FaultTable* t, const FaultEvent* event, uint32_t number) noexcept nogil:
    """Keep the newest number of the newest two connections.

    Locality: server loop.
    Locks: takes mutex.
    """
    pthread_mutex_lock(&t.mutex)
    if t.newest[0].known and not _is_from(&t.newest[0], event):
        t.newest[1] = t.newest[0]
    t.newest[0].known = True
    t.newest[0].listener = event.listener
    t.newest[0].connection = event.connection
    t.newest[0].number = number
    pthread_mutex_unlock(&t.mutex)


cdef bint faults_other(FaultTable* t, const FaultEvent* event, uint32_t* number) noexcept nogil:
    """Return the newest number of another connection.

    Locality: server loop.
    Locks: takes mutex.
    """
    cdef int i
    cdef bint found = False
    pthread_mutex_lock(&t.mutex)
    for i in range(2):
        if not found and t.newest[i].known and not _is_from(&t.newest[i], event):
            number[0] = t.newest[i].number
            found = True
    pthread_mutex_unlock(&t.mutex)
    return found


cdef int64_t faults_room(FaultTable* t, const FaultEvent* event, int64_t received) noexcept nogil:
    """Tell how many bytes come before the next byte trigger.

    Locality: server loop.
    Locks: takes mutex.
    """
    cdef FaultRule* rule
    cdef int64_t room = -1
    cdef int i
    pthread_mutex_lock(&t.mutex)
    for i in range(t.count):
        rule = t.rules[i]
        if rule.points & POINT_BYTES and rule.at_byte > received and _matches(rule, event):
            if room < 0 or rule.at_byte - received < room:
                room = rule.at_byte - received
    pthread_mutex_unlock(&t.mutex)
    return room


cdef bint faults_reached(FaultTable* t, const FaultEvent* event, int64_t received, FaultWhat* out) noexcept nogil:
    """Ask the rules whose byte was just received.

    Locality: server loop.
    Locks: takes mutex.
    """
    cdef FaultRule* rule
    cdef int i
    out.actions = 0
    pthread_mutex_lock(&t.mutex)
    for i in range(t.count):
        rule = t.rules[i]
        if (rule.points & POINT_BYTES and rule.at_byte == received and _matches(rule, event)
                and _fires(t, rule, event)):
            _merge(out, &rule.what)
    pthread_mutex_unlock(&t.mutex)
    return out.actions != 0


cdef int64_t faults_rate(FaultTable* t, const FaultEvent* event) noexcept nogil:
    """Return the slowest rate that holds for a connection, 0 without one; each call is an event of those rules.

    Locality: server loop.
    Locks: takes mutex.
    """
    cdef FaultRule* rule
    cdef int64_t rate = 0
    cdef int i
    pthread_mutex_lock(&t.mutex)
    for i in range(t.count):
        rule = t.rules[i]
        if (rule.what.actions & DO_SLOW and rule.points & POINT_BYTES and _matches(rule, event)
                and _fires(t, rule, event)):
            if rate == 0 or rule.what.rate < rate:
                rate = rule.what.rate
    pthread_mutex_unlock(&t.mutex)
    return rate


cdef SessionFaults* faultsession_new() noexcept nogil:
    """Return a state without any fault.

    Locality: server loop.
    """
    return <SessionFaults*>calloc(1, sizeof(SessionFaults))


cdef void faultsession_free(SessionFaults* f) noexcept nogil:
    """Release the state and the replies it holds; NULL is allowed.

    Locality: server loop, or its owner after the loop has ended.
    """
    if f == NULL:
        return
    held_free_all(f.reversed)
    free(f.tally)
    free(f)


cdef Held* held_new(size_t n) noexcept nogil:
    """Return a block with room for ``n`` bytes.

    Locality: any thread.
    """
    cdef Held* held = <Held*>malloc(sizeof(Held) + n)
    if held != NULL:
        held.next = NULL
        held.session = 0
        held.due_us = 0
        held.single = False
        held.n = n
    return held


cdef uint8_t* held_bytes(Held* held) noexcept nogil:
    """Return the place of the bytes.  Locality: any thread."""
    return <uint8_t*>held + sizeof(Held)


cdef void held_insert(Held** list, Held* held) noexcept nogil:
    """Put a block into a list that is ordered by time.

    Locality: owner of the list.
    """
    while list[0] != NULL and list[0].due_us <= held.due_us:
        list = &list[0].next
    held.next = list[0]
    list[0] = held


cdef void held_free_all(Held* held) noexcept nogil:
    """Release a list.  Locality: owner of the list."""
    cdef Held* following
    while held != NULL:
        following = held.next
        free(held)
        held = following
