"""Registrations as Python's control calls see them.

Locality: GIL.  Locks: takes the table's mutex, for a few comparisons at a time.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put, buf_put_slice, buf_reserve
from dataproxy._core.base.siphash cimport HashKey, hash_key
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_STORE
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_load
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_wait, pthread_mutex_destroy,
    pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.server.arrivals cimport ARRIVAL_LOOPS, arrivals_notice
from dataproxy._core.server.committer cimport committer_submit
from dataproxy._core.server.entries cimport Entry, entry_free
from dataproxy._core.server.store.offsets cimport StoredOffset, offsets_read
from dataproxy._core.server.store.shared cimport store_fault
from dataproxy._core.server.tubemq.broker cimport broker_entry
from dataproxy._core.server.tubemq.limits cimport limit_check, limit_count, rules_set
from dataproxy._core.server.tubemq.registrations cimport (
    NO_POSITION, REG_FULL, REG_NO_OWNER, REG_OK, REG_TAKEN, REG_UNKNOWN, Registration, Registrations, Standing,
    registration_begin, registration_book, registration_commit, registration_drop, registration_expire,
    registration_find, registration_leave, registration_locate, registration_make, registration_reset,
    registration_take, registration_use, registrations_free, registrations_init,
)
from dataproxy._core.wire.tubemq.volume cimport VOLUME_RULES_MOST, VolumeRule

__all__ = ["RegistrationsCore"]


cdef enum:
    AT_ONCE = 4096              # buckets that are looked at while server loops wait


cdef void _sent_back(void* origin, Entry* chain) noexcept nogil:
    """Count positions that are back from the store.  Locality: committing thread, or who could not send it."""
    cdef Sent* sent = <Sent*>origin
    cdef Entry* entry
    pthread_mutex_lock(&sent.mutex)
    while chain != NULL:
        entry = chain
        chain = entry.next
        sent.failed += entry.status != ST_OK
        sent.under_way -= 1
        entry_free(entry)
    pthread_cond_broadcast(&sent.cond)
    pthread_mutex_unlock(&sent.mutex)


ctypedef struct Restored:       # positions that are read from the store
    Registrations* table
    bint full                   # there is no room for some


cdef bint _restore(void* context, const StoredOffset* one) noexcept nogil:
    """Take a position that was stored; no more of them if there is no room."""
    cdef Restored* restored = <Restored*>context
    cdef Registrations* t = restored.table
    cdef Registration* r
    pthread_mutex_lock(&t.mutex)
    if t.version < one.version:
        t.version = one.version
    if one.position >= 0:
        r = registration_make(t, one.group, one.topic, <int32_t>one.partition)
        restored.full = r == NULL
        if r != NULL:
            r.confirmed = r.kept = one.position
            r.kept_version = one.version
    pthread_mutex_unlock(&t.mutex)
    return not restored.full


cdef Slice _slice(bytes text):
    return slice_of(<const uint8_t*><const char*>text, <size_t>len(text))


cdef bytes _bytes(Slice s):
    return s.p[:s.n] if s.n else b""


cdef int _copy_row(const Registration* r, Buf* rows, Buf* texts) noexcept nogil:
    cdef int status = buf_put(rows, r, sizeof(Registration))
    status |= buf_put_slice(texts, r.group)
    status |= buf_put_slice(texts, r.topic)
    return status | buf_put_slice(texts, r.owner)


cdef int _copy(Registrations* t, const Slice* only, int64_t before_us, Buf* rows, Buf* texts) noexcept nogil:
    """Copy all registrations, or those of one group, with group, topic and owner behind one another.

    ``before_us``: only those whose owners have asked for nothing since then; 0: it does not matter.

    The mutex is free between some buckets and the next ones; a table that has grown meanwhile is copied anew.
    """
    cdef Registration* r
    cdef size_t size = 0
    cdef size_t i = 0
    cdef size_t n = AT_ONCE
    cdef int status = ST_OK
    while status == ST_OK and (size == 0 or i < size):
        if n >= AT_ONCE:
            if size:
                pthread_mutex_unlock(&t.mutex)
            pthread_mutex_lock(&t.mutex)
            n = 0
        if size != t.size:
            size = t.size
            i = rows.n = texts.n = 0
        r = t.buckets[i]
        while r != NULL:
            if before_us and (r.owner.n == 0 or r.asked_us >= before_us):
                pass
            elif only == NULL or slice_equals(r.group, only[0]):
                status |= _copy_row(r, rows, texts)
            r = r.next
        i += 1
        n += 1
    pthread_mutex_unlock(&t.mutex)
    return status


cdef bint _changed(Registrations* t, size_t* bucket, Buf* rows, Buf* texts) noexcept nogil:
    """Copy what has changed in some buckets; False: these were the last, or no memory is left until the next call."""
    cdef size_t n = 0
    cdef Registration* r
    cdef bint more = True
    pthread_mutex_lock(&t.mutex)
    while more and n < AT_ONCE and bucket[0] < t.size:
        r = t.buckets[bucket[0]]
        while more and r != NULL:
            if r.told != r.confirmed:
                more = (buf_reserve(texts, r.group.n + r.topic.n) == ST_OK
                        and buf_put(rows, r, sizeof(Registration)) == ST_OK)
                if more:             # only what is copied whole counts as told
                    buf_put_slice(texts, r.group)
                    buf_put_slice(texts, r.topic)
                    r.told = r.confirmed
            r = r.next
        bucket[0] += 1
        n += 1
    more = more and bucket[0] < t.size
    pthread_mutex_unlock(&t.mutex)
    return more


cdef int _expire(Registrations* t, int64_t now_us) noexcept nogil:
    """Take partitions from owners whose time is over; the mutex is free between some buckets and the next ones."""
    cdef Registration* r
    cdef size_t i = 0
    cdef int n = 0
    pthread_mutex_lock(&t.mutex)
    while i < t.size:       # which may grow: who moves to a later bucket is looked at twice
        r = t.buckets[i]
        while r != NULL:
            n += registration_expire(t, r, now_us)
            r = r.next
        i += 1
        if i % AT_ONCE == 0:
            pthread_mutex_unlock(&t.mutex)
            pthread_mutex_lock(&t.mutex)
    pthread_mutex_unlock(&t.mutex)
    return n


cdef class RegistrationsCore:
    """The registrations of a hub's broker.  Times are in us, positions are offsets."""

    def __cinit__(self, bytes key not None, int64_t limit_us, size_t most_bytes):
        """Make an empty table; ``key`` are 16 random bytes."""
        cdef HashKey made
        if len(key) != 16:
            raise ValueError(f"the key has {len(key)} bytes, expected 16")
        made = hash_key(<const uint8_t*><const char*>key)
        pthread_mutex_init(&self.sent.mutex, NULL)
        pthread_cond_init(&self.sent.cond, NULL)
        if registrations_init(&self.table, &made, limit_us, most_bytes) != ST_OK:
            raise MemoryError

    def attach(self, StoreCore store not None, int64_t wait_us) -> None:
        """Serve what a store has, and keep positions there if it is durable; before its committer starts.

        ``wait_us``: how long a request for messages waits for some, 0: not at all.  Raises StoreError, MemoryError.
        """
        cdef TubeBroker* b = &self.broker
        cdef Restored restored
        cdef int error = 0
        memset(&restored, 0, sizeof(Restored))
        restored.table = &self.table
        b.registrations = &self.table
        b.visit = store.visitor()
        b.store = store._source
        b.committer = store.committer
        b.keeps = not store._has_memory
        b.wait_us = wait_us
        if b.keeps:
            error = offsets_read(&store._shared.env, _restore, <void*>&restored)
        if error:
            raise store_fault(error, store.path, "read the offsets of consumers in")
        if restored.full:
            raise MemoryError("the stored offsets of consumer groups need more memory than registrations may have")
        self.store = store
        store.inform(self, arrivals_notice, <void*>&b.news)

    cdef int join(self, int number, Wakeup* wakeup) except -1:
        """Wake a server loop when entries come that its requests wait for; before it runs."""
        if number >= <int>ARRIVAL_LOOPS:
            raise ValueError(f"loop {number} is one too many")
        self.broker.news.loops[number] = wakeup
        self.broker.news.n_loops = number + 1
        return 0

    cdef int _store(self, bytes group, bytes topic, int32_t partition, const Confirmed* what) except -1:
        """Send a position to the store, if it is durable; ``flush`` waits until it is there."""
        cdef Claim c
        cdef Entry* entry
        if not self.broker.keeps:
            return 0
        c.client, c.group, c.topic, c.partition = _slice(b""), _slice(group), _slice(topic), partition
        entry = broker_entry(&c, what, _slice(b""))
        if entry == NULL:
            raise MemoryError
        entry.origin = <void*>&self.sent
        entry.back = _sent_back
        pthread_mutex_lock(&self.sent.mutex)
        self.sent.under_way += 1
        pthread_mutex_unlock(&self.sent.mutex)
        if committer_submit(self.broker.committer, entry) != ST_OK:     # the store is closed
            entry.status = ST_STORE
            _sent_back(<void*>&self.sent, entry)
        return 0

    def flush(self) -> int:
        """Wait until the store has what was sent there; return how many positions it could not keep.

        The committer runs.  Without the GIL; not on a server loop or the committing thread.
        """
        cdef int64_t failed
        with nogil:
            pthread_mutex_lock(&self.sent.mutex)
            while self.sent.under_way > 0:
                pthread_cond_wait(&self.sent.cond, &self.sent.mutex)
            failed = self.sent.failed
            self.sent.failed = 0
            pthread_mutex_unlock(&self.sent.mutex)
        return failed

    def reset(self, bytes group not None, bytes topic not None, int32_t partition, int64_t position) -> bool:
        """Let a group go on at a position; what a member has read before counts for nothing, also if it confirms it.

        False: there is no room for another group's partition.
        """
        cdef Confirmed what
        cdef Registration* r
        memset(&what, 0, sizeof(Confirmed))
        pthread_mutex_lock(&self.table.mutex)
        r = registration_make(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            registration_reset(&self.table, r, position)
            what.position, what.version = position, r.version
        pthread_mutex_unlock(&self.table.mutex)
        if r != NULL:
            self._store(group, topic, partition, &what)
        return r != NULL

    def create(self, bytes group not None, bytes topic not None, int32_t partition, int64_t position) -> int:
        """Let a group that has never been in a partition begin at a position, and return where it is.

        Whoever comes second finds what the first has set.  -1: there is no room for another group's partition.
        """
        cdef Confirmed what
        cdef Registration* r
        cdef int64_t found = NO_POSITION
        cdef bint made = False
        memset(&what, 0, sizeof(Confirmed))
        pthread_mutex_lock(&self.table.mutex)
        r = registration_make(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            made = r.confirmed == NO_POSITION
            if made:
                registration_reset(&self.table, r, position)
                what.position, what.version = position, r.version
            found = r.confirmed
        pthread_mutex_unlock(&self.table.mutex)
        if made:
            self._store(group, topic, partition, &what)
        return found

    def forget(self, bytes group not None, bytes topic not None, int32_t partition) -> int:
        """Forget where a group is in a partition: 200, 411 (nothing is known) or 410 (a member has it)."""
        cdef Confirmed what
        cdef Registration* r
        cdef int code = REG_UNKNOWN
        memset(&what, 0, sizeof(Confirmed))
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            code = REG_TAKEN if r.owner.n else REG_OK
        if code == REG_OK:
            registration_drop(&self.table, r)
            what.position, what.version = NO_POSITION, self.table.version
        pthread_mutex_unlock(&self.table.mutex)
        if code == REG_OK:
            self._store(group, topic, partition, &what)
        return code

    def counts(self) -> dict:
        """Return packs, messages and bytes of the answers so far, confirms, and requests that wait now."""
        cdef TubeBroker* b = &self.broker
        waiting = sum([atomic_load(&b.news.waiting[i]) for i in range(b.news.n_loops)])
        return {"packs": relaxed_load(&b.packs), "messages": relaxed_load(&b.messages), "bytes": relaxed_load(&b.bytes),
                "confirms": relaxed_load(&b.confirms), "waiting": waiting}

    def __dealloc__(self):
        """Release the table."""
        registrations_free(&self.table)
        pthread_mutex_destroy(&self.sent.mutex)
        pthread_cond_destroy(&self.sent.cond)

    def restore(self, bytes group not None, bytes topic not None, int32_t partition, int64_t position) -> bool:
        """Take a position that was stored; False if there is no room."""
        cdef Registration* r
        pthread_mutex_lock(&self.table.mutex)
        r = registration_make(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            r.confirmed = position
        pthread_mutex_unlock(&self.table.mutex)
        return r != NULL

    def knows(self, bytes group not None, bytes topic not None, int32_t partition) -> bool:
        """Tell whether a group has a position in a partition, or a member that has it."""
        cdef bint found
        pthread_mutex_lock(&self.table.mutex)
        found = registration_find(&self.table, _slice(group), _slice(topic), partition) != NULL
        pthread_mutex_unlock(&self.table.mutex)
        return found

    def take(
        self, bytes group not None, bytes topic not None, int32_t partition, bytes client not None,
        bytes filters not None, int64_t now_us,
    ) -> tuple[int, bytes]:
        """Register a client: (200, its name), or (code, who has the partition)."""
        cdef Registration* r
        cdef Buf owner              # nothing of Python's is made while the mutex is held
        cdef int code = REG_FULL
        buf_init(&owner)
        pthread_mutex_lock(&self.table.mutex)
        r = registration_make(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            code = registration_take(&self.table, r, _slice(client), _slice(filters), now_us)
            buf_put_slice(&owner, r.owner)
        pthread_mutex_unlock(&self.table.mutex)
        try:
            return code, _bytes(slice_of(owner.p, owner.n))
        finally:
            buf_free(&owner)

    def begin(
        self, bytes group not None, bytes topic not None, int32_t partition, int status, int64_t wanted, int64_t least,
        int64_t end,
    ) -> int:
        """Return where a registration that was taken begins; -1 if it is gone."""
        cdef Registration* r
        cdef Confirmed what
        cdef int64_t before = NO_POSITION
        memset(&what, 0, sizeof(Confirmed))
        what.position = NO_POSITION
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            before = r.confirmed
            what.position = registration_begin(&self.table, r, status, wanted, least, end)
            what.version = r.version
        pthread_mutex_unlock(&self.table.mutex)
        if what.position != before:
            self._store(group, topic, partition, &what)
        return what.position

    def use(self, bytes group not None, bytes topic not None, int32_t partition, bytes client not None, int64_t now_us):
        """Begin the time of an owner anew: 200, 411 or 412."""
        cdef Registration* r
        cdef int code
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        code = registration_use(&self.table, r, _slice(client), now_us)
        pthread_mutex_unlock(&self.table.mutex)
        return code

    def leave(
        self, bytes group not None, bytes topic not None, int32_t partition, bytes client not None, bint consumed,
        int64_t now_us,
    ) -> int:
        """End a registration: 200, 411 or 412."""
        cdef Registration* r
        cdef Confirmed what
        cdef int code
        memset(&what, 0, sizeof(Confirmed))
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        what.moved = r != NULL and consumed and r.pending > 0
        code = registration_leave(&self.table, r, _slice(client), consumed, now_us)
        if code == REG_OK:
            what.position, what.version = r.confirmed, r.version
        pthread_mutex_unlock(&self.table.mutex)
        if code == REG_OK and what.moved:
            self._store(group, topic, partition, &what)
        return code

    def locate(
        self, bytes group not None, bytes topic not None, int32_t partition, bytes client not None, bint consumed,
        bint manual, int64_t least, int64_t end, int64_t now_us,
    ) -> tuple[int, int]:
        """Return (code, where a request for messages begins)."""
        cdef Registration* r
        cdef int64_t at = NO_POSITION
        cdef int code
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        code = registration_use(&self.table, r, _slice(client), now_us)
        if code == REG_OK:
            at = registration_locate(&self.table, r, consumed, manual, least, end)
        pthread_mutex_unlock(&self.table.mutex)
        return code, at

    def book(
        self, bytes group not None, bytes topic not None, int32_t partition, int64_t scanned, bint matched, bint manual
    ) -> None:
        """Note what a request has read."""
        cdef Registration* r
        cdef Standing seen
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            seen.version, seen.pending = r.version, r.pending
            registration_book(&self.table, r, &seen, scanned, matched, manual)
        pthread_mutex_unlock(&self.table.mutex)

    def commit(
        self, bytes group not None, bytes topic not None, int32_t partition, bytes client not None, bint consumed,
        int64_t now_us,
    ) -> tuple[int, int]:
        """Confirm what an owner has read last, or let it be read again: (200, position) or (401, -1)."""
        cdef Registration* r
        cdef int64_t at = NO_POSITION
        cdef int code
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        code = registration_use(&self.table, r, _slice(client), now_us)
        if code == REG_OK:
            at = registration_commit(&self.table, r, consumed)
        else:
            code = REG_NO_OWNER
        pthread_mutex_unlock(&self.table.mutex)
        return code, at

    def set_rules(self, bytes group, tuple rules not None) -> None:
        """Let a group (None: every group) read no more than volume rules allow, from its next minute of reading on.

        ``rules``: (first minute, last minute, backlog, bytes a minute, wait in ms) each, by their first minute.
        """
        cdef VolumeRule made[VOLUME_RULES_MOST]
        cdef Slice name
        cdef const Slice* one = NULL
        cdef bint done
        cdef int i = 0
        if len(rules) > <int>VOLUME_RULES_MOST:
            raise ValueError(f"{len(rules)} rules, at most {<int>VOLUME_RULES_MOST} are kept")
        for first, last, backlog, size, wait in rules:
            made[i].first_minute, made[i].last_minute, made[i].backlog = first, last, backlog
            made[i].bytes, made[i].wait_ms = size, wait
            i += 1
        if group is not None:
            name = _slice(group)
            one = &name
        pthread_mutex_lock(&self.table.mutex)
        done = rules_set(&self.table.rules, one, made, i)
        pthread_mutex_unlock(&self.table.mutex)
        if not done:
            raise MemoryError

    def limit(
        self, bytes group not None, bytes topic not None, int32_t partition, int64_t backlog, size_t size,
        int64_t now_us, int64_t wall_ms,
    ) -> int:
        """Return what a group's next pack of a partition may have, as `limit_check`, and count ``size`` if it may."""
        cdef Registration* r
        cdef int64_t allowed = 0
        pthread_mutex_lock(&self.table.mutex)
        r = registration_find(&self.table, _slice(group), _slice(topic), partition)
        if r != NULL:
            allowed = limit_check(&r.limit, &self.table.rules, r.group, backlog, now_us, wall_ms)
            if allowed >= 0:
                limit_count(&r.limit, size)
        pthread_mutex_unlock(&self.table.mutex)
        return allowed

    def expire(self, int64_t now_us) -> int:
        """Take partitions from owners whose time is over; return how many."""
        cdef int n
        with nogil:
            n = _expire(&self.table, now_us)
        return n

    def found(self, bytes only=None) -> list[tuple[bytes, bytes, int, bytes, int, int]]:
        """Return (group, topic, partition, owner, confirmed, pending) of all, or of one group."""
        cdef Slice name
        if only is None:
            return self._rows(NULL, 0)
        name = _slice(only)
        return self._rows(&name, 0)

    def idle(self, int64_t before_us) -> list[tuple[bytes, bytes, int, bytes, int, int]]:
        """Return (group, topic, partition, owner, confirmed, us) of owners that have asked for nothing since a time."""
        return self._rows(NULL, before_us)

    cdef list _rows(self, const Slice* only, int64_t before_us):
        """Return registrations as `found` does, or with ``before_us`` as `idle`."""
        cdef Registration row
        cdef Buf rows
        cdef Buf texts
        cdef size_t i
        cdef size_t at = 0
        cdef int status
        cdef list out = []
        buf_init(&rows)
        buf_init(&texts)
        with nogil:
            status = _copy(&self.table, only, before_us, &rows, &texts)
        try:
            if status != ST_OK:
                raise MemoryError
            for i in range(rows.n // sizeof(Registration)):
                row = (<Registration*>rows.p)[i]     # of its slices only the lengths are still true
                group = _bytes(slice_of(texts.p + at, row.group.n))
                topic = _bytes(slice_of(texts.p + at + row.group.n, row.topic.n))
                owner = _bytes(slice_of(texts.p + at + row.group.n + row.topic.n, row.owner.n))
                at += row.group.n + row.topic.n + row.owner.n
                out.append((group, topic, row.partition, owner, row.confirmed,
                            row.asked_us if before_us else row.pending))
        finally:
            buf_free(&rows)
            buf_free(&texts)
        return out

    def changed(self) -> list[tuple[bytes, bytes, int, int]]:
        """Return (group, topic, partition, confirmed) of those whose position is another one than at the last call.

        The mutex is free between some buckets and the next ones: a table that grows meanwhile shows one twice at most.
        """
        cdef Registration row
        cdef Buf rows
        cdef Buf texts
        cdef size_t i = 0
        cdef size_t at = 0
        cdef list out = []
        buf_init(&rows)
        buf_init(&texts)
        try:
            while _changed(&self.table, &i, &rows, &texts):
                pass
            for i in range(rows.n // sizeof(Registration)):
                row = (<Registration*>rows.p)[i]     # of its slices only the lengths are still true
                group = _bytes(slice_of(texts.p + at, row.group.n))
                topic = _bytes(slice_of(texts.p + at + row.group.n, row.topic.n))
                at += row.group.n + row.topic.n
                out.append((group, topic, row.partition, row.confirmed))
        finally:
            buf_free(&rows)
            buf_free(&texts)
        return out

    @property
    def bytes(self) -> int:
        """Return the memory that all take, about."""
        return self.table.bytes
