"""What Python sees of the hub's port of RocketMQ: calls, connections, topics, subscriptions, and the store.

Locality: GIL, but for the wait for a call and for reads.  Locks: takes CallQueue.mutex and Remoting.mutex.
"""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

import ipaddress
import secrets

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put, buf_put_be16, buf_put_slice, buf_reserve
from dataproxy._core.base.siphash cimport HashKey, hash_key
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_DISK_FULL, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_load
from dataproxy._core.plat.clock cimport wall_ms
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.server.arrivals cimport ARRIVAL_LOOPS, BUCKETS, arrivals_follow, arrivals_notice, bucket_of
from dataproxy._core.server.calls cimport (
    ROLE_END, ROLE_ORDER, ROLE_OWED, ROLE_UNOWED, ROLE_WAIT, Call, CallQueue, Endpoint, call_new, calls_drop,
    calls_give, calls_stop, calls_take, calls_wake,
)
from dataproxy._core.server.rocketmq.appends cimport (
    Appended, Appending, appending_add, appending_free, appending_new, appending_submit,
)
from dataproxy._core.server.rocketmq.keyed cimport keyed_drop, keyed_key, keyed_make, keyed_next
from dataproxy._core.server.rocketmq.messages cimport Source, message_seen
from dataproxy._core.server.rocketmq.pulls cimport WaitWish
from dataproxy._core.server.rocketmq.remoting cimport (
    FILTER_ALL, FILTER_ASKED, FILTER_TAGS, KIND_ANSWER, KIND_CLOSED, KIND_REQUEST, KIND_STORED, CommitSeen, Route,
    Subscription, remoting_free, remoting_init, remoting_subscribe, remoting_unsubscribe,
)
from dataproxy._core.server.rocketmq.silence cimport silent_rows
from dataproxy._core.server.state cimport ServerLoop, loop_answered
from dataproxy._core.server.store.reader cimport NameRow, ReadBatch, batch_free, batch_init
from dataproxy._core.server.store.visits cimport Seen, Visit, visit_free, visit_init
from dataproxy._core.server.tubemq.registrations cimport INDEX_BYTES, NO_POSITION, Registration, registration_find
from dataproxy._core.wire.rocketmq.const cimport (
    FLAG_ONE_WAY, FORM_JSON, LANGUAGE_ANSWERED, PROPERTIES_MOST, TOPIC_MOST, VERSION_ANSWERED,
)
from dataproxy._core.wire.rocketmq.header cimport (
    Command, CommandFields, fields_begin, fields_step, language_name, read_command,
)
from dataproxy._core.wire.rocketmq.serve cimport answer_head, handle_of, put_refusal
from dataproxy._core.wire.rocketmq.stored cimport Host, StoredMessage, put_stored, read_stored, stored_size
from dataproxy._core.wire.rocketmq.write cimport (
    CommandWriter, write_begin, write_end, write_field, write_header,
)

__all__ = ["ANSWER", "CLOSED", "REQUEST", "STORED", "RemotingCall", "RemotingCore"]

REQUEST, ANSWER, CLOSED, STORED = KIND_REQUEST, KIND_ANSWER, KIND_CLOSED, KIND_STORED

cdef enum:
    LOOP_BITS = 6
    SLOT_BITS = 26
    OFFSET_BITS = 39
    NAME_MOST = 255
    APPEND_MOST = 67108864
    NO_LOG = 0x7FFFFFFF         # the store gives lower numbers
    PLACE_FAILED = 1            # of `places`: the store could not take it ...
    PLACE_FULL = 2              # ... its disk is full ...
    PLACE_NAMELESS = 3          # ... or it has no room for another name


cdef Slice _slice(bytes text):
    return slice_of(<const uint8_t*><const char*>text, <size_t>len(text))


cdef bytes _bytes(Slice s):
    return s.p[:s.n] if s.n else b""


cdef str _text(Slice s):
    return _bytes(s).decode("utf-8", "replace")


cdef bytes _name(str name, str what, size_t most):
    """Return a name as bytes; raise ValueError if it is empty or too long."""
    cdef bytes raw = name.encode()
    if not 0 < len(raw) <= most:
        raise ValueError(f"the {what} {name!r} has {len(raw)} bytes, expected 1 to {most}")
    return raw


cdef str _end(const Endpoint* end):
    """Return an end of a connection as ``address:port``; "" for one that is not known."""
    if end.n == 4:
        return f"{end.address[0]}.{end.address[1]}.{end.address[2]}.{end.address[3]}:{end.port}"
    if end.n == 16:
        words = [f"{end.address[2 * i] << 8 | end.address[2 * i + 1]:x}" for i in range(8)]
        return f"[{':'.join(words)}]:{end.port}"
    return ""


cdef int _write(Buf* out, const Command* head, dict fields, bytes body) except -1:
    """Append a frame.  Raises ValueError for one that is larger than a frame can be, MemoryError."""
    cdef CommandWriter w
    cdef bytes name, value
    cdef int status
    write_begin(&w, out, head)
    if fields is not None:
        for key, given in fields.items():
            name, value = key.encode(), given.encode()
            write_field(&w, _slice(name), _slice(value))
    write_header(&w)
    if w.status == ST_OK:
        w.status = buf_put_slice(out, _slice(body))
    status = write_end(&w)
    if status == ST_NO_MEMORY:
        raise MemoryError
    if status != ST_OK:
        raise ValueError(f"a frame with a body of {len(body)} bytes, or its fields, are more than a frame can have")
    return 0


ctypedef struct Looking:        # one read of a queue
    Visit v
    Source source
    Buf out                     # messages
    Buf ends                    # where each ends, and its offset
    Buf properties
    int64_t offset


cdef int _look_place(void* context) noexcept nogil:
    cdef Looking* x = <Looking*>context
    if x.v.most_entries == 0:
        return ST_CLOSED
    x.v.offset = <uint64_t>min(max(x.offset, <int64_t>x.v.first), <int64_t>x.v.next)
    return ST_OK


cdef int _look_take(void* context) noexcept nogil:
    """Write what was seen as stored messages."""
    cdef Looking* x = <Looking*>context
    cdef const Seen* seen = <const Seen*>x.v.seen.p
    cdef StoredMessage m
    cdef int64_t[2] end
    cdef size_t i
    x.source.log = x.v.log
    for i in range(x.v.seen.n // sizeof(Seen)):
        if (message_seen(&x.source, &seen[i], &x.properties, &m) != ST_OK
                or buf_reserve(&x.out, stored_size(&m)) != ST_OK):
            return ST_NO_MEMORY
        x.out.n = <size_t>(put_stored(x.out.p + x.out.n, &m) - x.out.p)
        end[0], end[1] = <int64_t>x.out.n, <int64_t>seen[i].offset
        if buf_put(&x.ends, end, sizeof(end)) != ST_OK:
            return ST_NO_MEMORY
    return ST_OK


@cython.no_gc_clear
cdef class RemotingCall:
    """A request of a client, an answer to one of the hub's, or news: of a connection's end, or of stored messages.

    ``kind`` tells which (REQUEST, ANSWER, CLOSED, STORED).  A request that is dropped without an answer is answered
    with SYSTEM_ERROR.  ``token`` and ``places`` are those of `RemotingCore.append`.
    """

    def __dealloc__(self):
        """Answer it, if nobody has."""
        if self.call != NULL:
            self.call.answer.n = 0      # an answer that could not be written whole
            put_refusal(&self.call.answer, self.form, self.opaque, 1, b"the hub could not answer the request")
            self._hand_back(self.call)
            self.call = NULL

    cdef void _hand_back(self, Call* call) noexcept:
        """Give a call back to its server loop; the loops may be gone, when nobody waits for it any more."""
        if self.core.n_loops:
            calls_give(&self.core.remoting.queue, call)
        else:
            calls_drop(&self.core.remoting.queue, call)

    cdef int _take(self, RemotingCore core, Call* call) except -1:
        """Take over a call."""
        self.core = core
        self.call = call
        self.kind = call.kind if call.role == ROLE_UNOWED else KIND_REQUEST
        self.connection = 0 if self.kind == KIND_STORED else call.connection
        self.token = call.connection if self.kind == KIND_STORED else 0
        self.peer = _end(&call.far)
        self.local = _end(&call.near)
        self.language = self.remark = ""
        self.frame = self.body = b""
        self.fields = {}
        self.places = []
        try:
            self._read()
        finally:
            if call.role != ROLE_OWED:
                self.call = NULL
                calls_drop(&core.remoting.queue, call)
        return 0

    cdef int _read(self) except -1:
        """Read what there is of the call."""
        cdef Call* call = self.call
        cdef const Appended* places = <const Appended*>call.answer.p
        cdef Buf scratch
        cdef Command command
        cdef CommandFields fields
        cdef Slice name, value
        cdef size_t i
        if self.kind == KIND_STORED:
            for i in range(call.answer.n // sizeof(Appended)):
                self.places.append(_placed(&places[i]))
        if call.request.n == 0:
            return 0
        self.form, self.opaque = call.service, <int32_t>call.serial
        self.code, self.flag = call.method, call.version
        self.frame = _bytes(call.request)
        buf_init(&scratch)
        try:
            if read_command(call.request.p, call.request.n, &scratch, &command) != ST_OK:
                raise MemoryError       # the server loop has read it before
            self.version = command.version
            self.language = _text(language_name(command.language))
            self.remark = _text(command.remark)
            self.body = _bytes(command.body)
            fields_begin(&fields, &command)
            while fields_step(&fields, &name, &value):
                self.fields[_text(name)] = _text(value)
        finally:
            buf_free(&scratch)
        return 0

    @property
    def oneway(self) -> bool:
        """Tell whether nobody waits for an answer."""
        return self.flag & FLAG_ONE_WAY != 0 or self.kind != KIND_REQUEST

    def answer(self, int code, dict fields=None, str remark="", bytes body=b"") -> None:
        """Answer a request, once, in the form of its header; what needs no answer gets none.

        Raises ValueError for a request that is answered, and for an answer that no frame can hold.
        """
        if self.oneway:
            return
        if self.call == NULL:
            raise ValueError("the request is answered, or waits")
        self._give(code, fields, remark.encode(), body)

    cdef int _give(self, int code, dict fields, bytes remark, bytes body) except -1:
        cdef Call* call = self.call
        cdef Command head
        answer_head(&head, self.form, self.opaque)
        head.code, head.remark, head.extended = code, _slice(remark), fields is not None
        call.answer.n = 0       # an earlier one that could not be written whole
        _write(&call.answer, &head, fields, body)
        self.call = NULL
        self._hand_back(call)
        return 0

    def wait(self, str topic not None, int queue, int64_t offset, int64_t until_us) -> None:
        """Let a request come again from `RemotingCore.take`, when a queue is longer than ``offset`` or at a time.

        It may come earlier, and it comes no more if its connection ends.  ``until_us``: of the hub's clock, at most
        50 s from now.  Raises ValueError for a request that is answered, or that needs no answer.
        """
        cdef Call* call = self.call
        cdef WaitWish wish
        cdef bytes name = _name(topic, "topic", NAME_MOST)
        if call == NULL:
            raise ValueError("the request is answered, waits, or needs no answer")
        wish.offset, wish.until_us, wish.queue = offset, until_us, queue
        call.answer.n = 0
        if (buf_put(&call.answer, &wish, sizeof(WaitWish)) != ST_OK
                or buf_put_slice(&call.answer, _slice(name)) != ST_OK):
            call.answer.n = 0
            raise MemoryError
        call.role = ROLE_WAIT
        self.call = NULL
        self._hand_back(call)


cdef tuple _placed(const Appended* one):
    """Return (0, offset, handle), or (why not, -1, -1)."""
    if one.status == ST_OK:
        return 0, one.offset, handle_of(one.log, one.offset)
    return (PLACE_FULL if one.status == ST_DISK_FULL else PLACE_NAMELESS if one.status == ST_LIMIT else PLACE_FAILED,
            -1, -1)


cdef void _wake(void* queue) noexcept nogil:
    """Wake the thread that takes calls: entries have come in that it follows.  Locality: the committer's."""
    calls_wake(<CallQueue*>queue)


cdef class RemotingCore:
    """What a hub needs to be a name server and a broker of RocketMQ.

    At most ``most_calls`` with ``most_bytes`` wait or are worked on, of which an address may have half of what the
    others leave.  Offsets are those of the store's logs, queues its partitions, topics its groups.
    """

    def __cinit__(self, size_t most_calls, size_t most_bytes):
        """Make a core without a store."""
        cdef bytes secret = secrets.token_bytes(16)
        cdef HashKey key = hash_key(<const uint8_t*><const char*>secret)
        self.names = {}
        if remoting_init(&self.remoting, &key, most_calls, most_bytes) != ST_OK:
            raise MemoryError

    def __dealloc__(self):
        """Release everything."""
        remoting_free(&self.remoting)

    def attach(self, StoreCore store not None, RegistrationsCore registrations not None) -> None:
        """Serve what a store has; before its committer starts.  ``registrations`` keep offsets of groups."""
        self.remoting.visit = store.visitor()
        self.remoting.store = store._source
        self.remoting.committer = store.committer
        self.store = store
        self.registrations = registrations
        self.remoting.news.follower, self.remoting.news.follower_context = _wake, <void*>&self.remoting.queue
        store.inform(self, arrivals_notice, <void*>&self.remoting.news)

    cdef int join(self, int number, ServerLoop* d) except -1:
        """Know a server loop; before it runs."""
        if number >= <int>ARRIVAL_LOOPS:
            raise ValueError(f"loop {number} is one too many")
        self.remoting.news.loops[number] = &d.wakeup
        self.remoting.news.n_loops = number + 1
        self.loops[number] = d
        self.n_loops = number + 1
        return 0

    cdef int part(self) except -1:
        """Forget the server loops, which are released; none of them runs."""
        self.n_loops = 0
        self.remoting.news.n_loops = 0
        return 0

    # ---- Calls.

    def take(self, int64_t until_us) -> RemotingCall | None:
        """Wait for a call until a time of the monotonic clock, in us; None: it came, or the queue was woken or stopped.

        One thread.
        """
        cdef RemotingCall found
        cdef Call* call
        with nogil:
            call = calls_take(&self.remoting.queue, until_us)
        if call == NULL:
            return None
        found = RemotingCall.__new__(RemotingCall)
        found._take(self, call)
        return found

    def wake(self) -> None:
        """Make ``take`` return without a call, once.  Any thread."""
        calls_wake(&self.remoting.queue)

    def stop(self) -> None:
        """Take no further requests; what waits is still given out.  Any thread."""
        calls_stop(&self.remoting.queue)

    @property
    def stopped(self) -> bool:
        """Tell whether no further requests are taken.  The thread that takes them."""
        return self.remoting.queue.stopped

    def stats(self) -> dict[str, int]:
        """Return counts: calls, refused ones, answers with messages and what they had, batches, pulls that wait."""
        cdef int i
        waiting = sum([atomic_load(&self.remoting.news.waiting[i]) for i in range(self.n_loops)])
        return {"calls": relaxed_load(&self.remoting.queue.taken),
                "refused_calls": relaxed_load(&self.remoting.queue.refused),
                "pulls": relaxed_load(&self.remoting.pulls), "messages": relaxed_load(&self.remoting.messages),
                "bytes": relaxed_load(&self.remoting.bytes), "batches": relaxed_load(&self.remoting.batches),
                "stray_answers": relaxed_load(&self.remoting.stray), "waiting": waiting}

    # ---- Connections.

    cdef int _tell(self, uint64_t connection, int role, int kind, Buf* frame) except -1:
        """Give an order for a connection to its loop; the bytes of ``frame`` are taken over."""
        cdef int number = <int>(connection >> SLOT_BITS & ((1 << LOOP_BITS) - 1))
        cdef Call parts
        cdef Call* call
        if number >= self.n_loops:
            buf_free(frame)
            return 0
        memset(&parts, 0, sizeof(Call))
        parts.role, parts.kind = role, kind
        parts.origin = <void*>self.loops[number]
        parts.session = connection >> 32 << 32 | connection & ((<uint64_t>1 << SLOT_BITS) - 1)
        call = call_new(&parts)
        if call == NULL:
            buf_free(frame)
            raise MemoryError
        call.answer = frame[0]
        loop_answered(call.origin, call)
        return 0

    def send(self, uint64_t connection, int code, int opaque, bint oneway, dict fields=None, bytes body=b"") -> None:
        """Send a request of the hub's own to a connection, with a header of JSON.

        An answer comes as a call of the kind ANSWER with this ``opaque``.  A connection that is gone, or with over
        1 MiB to read, which is closed, gets nothing; that it is closed comes as a call.  Raises ValueError for what
        no frame can hold.
        """
        cdef Command head
        cdef Buf out
        memset(&head, 0, sizeof(Command))
        head.form, head.code, head.opaque, head.flag = FORM_JSON, code, opaque, FLAG_ONE_WAY if oneway else 0
        head.language, head.version, head.numbered = LANGUAGE_ANSWERED, VERSION_ANSWERED, True
        head.extended = fields is not None
        buf_init(&out)
        try:
            _write(&out, &head, fields, body)
        except BaseException:
            buf_free(&out)
            raise
        self._tell(connection, ROLE_ORDER, KIND_REQUEST if oneway else KIND_ANSWER, &out)

    def close(self, uint64_t connection, bint at_once=False) -> None:
        """Close a connection once what it is owed is sent; ``at_once``: whether it has read that or not."""
        cdef Buf nothing
        buf_init(&nothing)
        self._tell(connection, ROLE_END, at_once, &nothing)

    # ---- Logs that the thread follows.

    def follow(self, str topic not None, int queue) -> int:
        """Let `take` return when a queue gets messages; return the queue's bucket, by which `news` tells of it.

        What came before is not told: look at the queue after this.  The thread that takes calls.
        """
        cdef bytes name = _name(topic, "topic", NAME_MOST)
        cdef int bucket = bucket_of(_slice(name), <uint32_t>queue)
        arrivals_follow(&self.remoting.news, bucket, 1)
        return bucket

    def unfollow(self, int bucket) -> None:
        """Follow one queue of a bucket less."""
        if not 0 <= bucket < <int>BUCKETS:
            raise ValueError(f"there is no bucket {bucket}")
        arrivals_follow(&self.remoting.news, bucket, -1)

    def news(self) -> list[int]:
        """Return the buckets that are followed and have got messages since the last call; of other queues, too."""
        cdef int64_t arrived
        cdef int i
        cdef list found = []
        for i in range(<int>BUCKETS):
            if atomic_load(&self.remoting.news.followed[i]) > 0:
                arrived = atomic_load(&self.remoting.news.arrived[i])
                if arrived != self.seen[i]:
                    self.seen[i] = arrived
                    found.append(i)
        return found

    # ---- Topics and subscriptions.

    def set_topic(self, str name not None, int read_queues, int write_queues, int permission) -> None:
        """Let server loops know a topic: messages for it are stored, and pulls answered, without the thread.

        ``permission``: 4 to read, 2 to write.  Raises ValueError for a name over 127 bytes, or numbers below 0.
        """
        cdef bytes raw = _name(name, "topic", TOPIC_MOST)
        cdef Route* route
        if min(read_queues, write_queues) < 0:
            raise ValueError(f"a topic has no {min(read_queues, write_queues)} queues")
        pthread_mutex_lock(&self.remoting.mutex)
        route = <Route*>keyed_make(&self.remoting.routes, _slice(raw))
        if route != NULL:
            route.read_queues, route.write_queues, route.permission = read_queues, write_queues, permission
        pthread_mutex_unlock(&self.remoting.mutex)
        if route == NULL:
            raise MemoryError

    def drop_topic(self, str name not None) -> None:
        """Forget a topic."""
        cdef bytes raw = name.encode()
        pthread_mutex_lock(&self.remoting.mutex)
        keyed_drop(&self.remoting.routes, _slice(raw))
        pthread_mutex_unlock(&self.remoting.mutex)

    def subscribe(self, uint64_t connection, str group not None, str topic not None, int64_t version, tags,
                  bint sql=False) -> None:
        """Let pulls of a connection, which name no subscription, find this one; in the place of an older one.

        ``tags`` are texts, None: all messages.  ``sql``: pulls come as calls.  Raises ValueError for a tag that is too
        long.
        """
        cdef bytes raw_group = group.encode()
        cdef bytes raw_topic = topic.encode()
        cdef bytes raw
        cdef Subscription s
        cdef Buf out
        cdef int status = ST_OK
        memset(&s, 0, sizeof(Subscription))
        s.group, s.topic, s.version = _slice(raw_group), _slice(raw_topic), version
        s.filter = FILTER_ASKED if sql else FILTER_ALL if tags is None or not tags else FILTER_TAGS
        buf_init(&out)
        try:
            for tag in (tags if s.filter == FILTER_TAGS else ()):
                raw = _name(tag, "tag", PROPERTIES_MOST)
                status |= buf_put_be16(&out, <unsigned short>len(raw))
                status |= buf_put_slice(&out, _slice(raw))
            s.tags = slice_of(out.p, out.n)
            if status != ST_OK or remoting_subscribe(&self.remoting, connection, &s) != ST_OK:
                raise MemoryError
        finally:
            buf_free(&out)

    def silent(self, int64_t before_us) -> list[tuple[int, str, str, int]]:
        """Return (connection, group, topic, us) of subscriptions by which nothing was pulled since a time; 0: never.

        At most about 10,000.  ``before_us``: of the hub's clock.
        """
        return silent_rows(&self.remoting, before_us)

    def unsubscribe(self, uint64_t connection, str group=None, str topic=None) -> None:
        """Forget subscriptions of a connection: of a group, of a topic, or all."""
        cdef bytes raw_group = b"" if group is None else group.encode()
        cdef bytes raw_topic = b"" if topic is None else topic.encode()
        cdef Slice one = _slice(raw_group)
        cdef Slice other = _slice(raw_topic)
        remoting_unsubscribe(&self.remoting, connection, NULL if group is None else &one,
                             NULL if topic is None else &other)

    def hand_over(self, str group not None, bint asked) -> None:
        """Let all pulls of a group come as calls, or none."""
        cdef bytes raw = _name(group, "group", NAME_MOST)
        cdef void* row = NULL
        pthread_mutex_lock(&self.remoting.mutex)
        if asked:
            row = keyed_make(&self.remoting.asked, _slice(raw))
        else:
            keyed_drop(&self.remoting.asked, _slice(raw))
        pthread_mutex_unlock(&self.remoting.mutex)
        if asked and row == NULL:
            raise MemoryError

    # ---- Offsets of groups.

    def commits(self) -> list[tuple[int, str, str, int, int]]:
        """Return (connection, group, topic, queue, offset) of what pulls have confirmed since the last call."""
        cdef CommitSeen* seen
        cdef Slice key
        cdef CommitSeen one
        cdef Buf keys
        cdef Buf rows
        cdef size_t i, at = 0, n
        cdef list found = []
        cdef int status = ST_OK
        buf_init(&keys)
        buf_init(&rows)
        pthread_mutex_lock(&self.remoting.mutex)
        seen = self.remoting.changed
        while seen != NULL and status == ST_OK:
            key = keyed_key(&self.remoting.commits, seen)
            one = seen[0]
            one.told = <int64_t>(key.n - 8)     # bytes of both names
            status = buf_reserve(&keys, key.n) | buf_put(&rows, &one, sizeof(CommitSeen))
            if status == ST_OK:
                buf_put_slice(&keys, key)
                seen.told, seen.listed = seen.offset, False
                seen = seen.next
                self.remoting.changed = seen
        pthread_mutex_unlock(&self.remoting.mutex)
        try:
            for i in range(rows.n // sizeof(CommitSeen)):
                one = (<CommitSeen*>rows.p)[i]
                n = <size_t>one.told
                found.append((one.connection, _text(slice_of(keys.p + at, one.group_n)),
                              _text(slice_of(keys.p + at + one.group_n, n - one.group_n)), one.queue, one.offset))
                at += n + 8
        finally:
            buf_free(&keys)
            buf_free(&rows)
        self._tidy()
        return found

    def _tidy(self) -> None:
        """Forget what was told already when there is little room left."""
        cdef void* row = NULL
        cdef CommitSeen* seen
        pthread_mutex_lock(&self.remoting.mutex)
        if 2 * self.remoting.commits.count >= self.remoting.commits.most:
            row = keyed_next(&self.remoting.commits, NULL)
        while row != NULL:
            seen = <CommitSeen*>row
            row = keyed_next(&self.remoting.commits, row)
            if not seen.listed:
                keyed_drop(&self.remoting.commits, keyed_key(&self.remoting.commits, seen))
        pthread_mutex_unlock(&self.remoting.mutex)

    def commit(self, str group not None, str topic not None, int queue, int64_t offset) -> bool:
        """Set where a group goes on in a queue, and send it to the store; False: there is no room for another one."""
        return self.registrations.reset(group.encode(), topic.encode(), queue, offset * INDEX_BYTES)

    def create(self, str group not None, str topic not None, int queue, int64_t offset) -> int:
        """Let a group that has never been in a queue begin at an offset, and return where it is.

        Where an offset is kept already, that one is returned and nothing changes, whoever set it, and at whatever
        time.  -1: there is no room for another one.
        """
        at = self.registrations.create(group.encode(), topic.encode(), queue, offset * INDEX_BYTES)
        return at if at < 0 else at // INDEX_BYTES

    def committed(self, str group not None, str topic not None, int queue) -> int:
        """Return where a group goes on in a queue; -1: it has never been there."""
        cdef bytes raw_group = group.encode()
        cdef bytes raw_topic = topic.encode()
        cdef const Registration* r
        cdef int64_t at = NO_POSITION
        pthread_mutex_lock(&self.registrations.table.mutex)
        r = registration_find(&self.registrations.table, _slice(raw_group), _slice(raw_topic), queue)
        if r != NULL:
            at = r.confirmed
        pthread_mutex_unlock(&self.registrations.table.mutex)
        return at if at < 0 else at // INDEX_BYTES

    def offsets(self) -> list[tuple[str, str, int, int]]:
        """Return (group, topic, queue, offset) of all groups."""
        return [(group.decode("utf-8", "replace"), topic.decode("utf-8", "replace"), queue, at // INDEX_BYTES)
                for group, topic, queue, _, at, _ in self.registrations.found() if at >= 0]

    # ---- The store.

    def append(self, uint64_t token, messages) -> None:
        """Store messages: (topic, queue, the bytes of a stored message) of each, whose own places do not matter.

        What comes of them is a call of the kind STORED with this ``token``, and (status, offset, handle) of each in
        ``places``: status 0, or 1 (the store could not take it), 2 (its disk is full), 3 (no room for another name).
        Nothing is stored if this raises: ValueError for bytes that are no stored message, or over 64 MiB together.
        """
        cdef Appending* a
        cdef StoredMessage m
        cdef Buf scratch
        cdef bytes name, data
        cdef size_t size = 0, total = 0
        cdef int status
        a = appending_new(&self.remoting.queue, token)
        if a == NULL:
            raise MemoryError
        buf_init(&scratch)
        try:
            for topic, queue, data in messages:
                total += <size_t>len(data)
                if total > APPEND_MOST:
                    raise ValueError(f"the messages have more than {APPEND_MOST} bytes together")
                if read_stored(_slice(data), &m, &size) != ST_OK or size != <size_t>len(data):
                    raise ValueError(f"these {len(data)} bytes are no stored message")
                if not 0 <= queue <= 0x7FFFFFFF:
                    raise ValueError(f"there is no queue {queue}")
                name = _name(topic, "topic", NAME_MOST)
                m.topic, m.queue = _slice(name), queue
                status = appending_add(a, self.remoting.committer, &m, wall_ms(), &scratch)
                if status == ST_LIMIT:
                    raise ValueError(f"the properties of a message, {m.properties.n} bytes, are too long to be stored")
                if status != ST_OK:
                    raise MemoryError
        except BaseException:
            appending_free(a)
            raise
        finally:
            buf_free(&scratch)
        appending_submit(a, self.remoting.committer)

    def read(self, str topic not None, int queue, int64_t offset, size_t most, size_t most_bytes=1 << 20,
             str local="") -> list[tuple[int, bytes]]:
        """Return (offset, stored message) of messages from an offset on, as a pull gets them; any thread.

        One is given however large it is.  ``local``: address and port (IPv4) that messages name as the hub's.  Raises
        StoreError.
        """
        cdef Looking x
        cdef bytes name = topic.encode()
        cdef const int64_t* ends
        cdef size_t i
        cdef int64_t at = 0
        cdef int status
        cdef list found = []
        memset(&x, 0, sizeof(Looking))
        visit_init(&x.v)
        _host(local, &x.source.host)
        x.source.topic, x.source.queue, x.offset = _slice(name), queue, offset
        x.v.topic, x.v.partition = x.source.topic, <uint32_t>queue
        x.v.most_entries, x.v.enough_bytes, x.v.most_bytes = max(most, 1), most_bytes, most_bytes
        x.v.place, x.v.take, x.v.context = _look_place, _look_take, <void*>&x
        try:
            with nogil:
                status = self.remoting.visit(self.remoting.store, &x.v)
            self.store._check(status, x.v.error)
            ends = <const int64_t*>x.ends.p
            for i in range(x.ends.n // 16):
                found.append((ends[2 * i + 1], _bytes(slice_of(x.out.p + at, <size_t>(ends[2 * i] - at)))))
                at = ends[2 * i]
        finally:
            visit_free(&x.v)
            buf_free(&x.out)
            buf_free(&x.ends)
            buf_free(&x.properties)
        return found

    def extent(self, str topic not None, int queue) -> tuple[int, int]:
        """Return the offset of the oldest message of a queue, and the one that the next message gets."""
        return self._extent(topic, queue)[:2]

    def _extent(self, str topic not None, int queue):
        """Return what `extent` does, and the store's number of the log, None without one."""
        cdef Looking x
        cdef bytes name = topic.encode()
        cdef int status
        memset(&x, 0, sizeof(Looking))
        visit_init(&x.v)
        x.v.topic, x.v.partition, x.v.log = _slice(name), <uint32_t>queue, NO_LOG
        x.v.place, x.v.take, x.v.context = _look_place, _look_take, <void*>&x
        with nogil:
            status = self.remoting.visit(self.remoting.store, &x.v)
        visit_free(&x.v)
        if status != ST_CLOSED:
            self.store._check(status, x.v.error)
        return x.v.first, x.v.next, x.v.log if x.v.log != NO_LOG else None

    def handle(self, str topic not None, int queue, int64_t offset) -> int:
        """Return what stands for a message's place in the files of a broker; -1: the queue has had no message."""
        log = self._extent(topic, queue)[2]
        return -1 if log is None else handle_of(log, <uint64_t>offset)

    def place(self, int64_t handle) -> tuple[str, int, int] | None:
        """Return topic, queue and offset of a handle; None: there is no such log."""
        cdef uint32_t log = <uint32_t>(<uint64_t>handle >> OFFSET_BITS)
        if handle < 0:
            return None
        found = self._named(log)
        return None if found is None else (*found, handle & ((<int64_t>1 << OFFSET_BITS) - 1))

    cdef object _named(self, unsigned int log):
        """Return topic and queue of a log.  Names can be given up, and numbers given anew: what is known is checked."""
        cdef ReadBatch batch
        cdef const NameRow* rows
        cdef size_t i
        found = self.names.get(log)
        if found is not None and self._extent(*found)[2] == log:
            return found
        batch_init(&batch)
        try:
            self.store._check(self.store._reader.logs(self.store._source, NULL, &batch), batch.error)
            rows = <const NameRow*>batch.rows.p
            self.names = {rows[i].log: (_text(slice_of(batch.data.p + rows[i].start, rows[i].topic_size)),
                                        rows[i].partition)
                          for i in range(batch.rows.n // sizeof(NameRow))}
        finally:
            batch_free(&batch)
        return self.names.get(log)


cdef int _host(str text, Host* out) except -1:
    """Read ``a.b.c.d:port`` or ``[a::b]:port``; "" is 0.0.0.0:0."""
    cdef int i
    cdef bytes packed
    out.n = 4
    if text:
        address, _, port = text.rpartition(":")
        packed = ipaddress.ip_address(address.strip("[]")).packed
        out.n = len(packed)
        for i in range(out.n):
            out.address[i] = packed[i]
        out.port = int(port)
    return 0
