"""SEND (10, 310, 320): messages that are stored as they are; the answer has their places.

Messages that somebody has to decide about (for topics that are not known, delayed, half, or sent again) go to the
thread.  Each message of a batch is an entry with an offset of its own.  They go to the store as one chain; if it can
take only the first of them, the request is refused all the same, and the client sends it again: a batch is not one
transaction.

Locality: server loop.  Locks: takes Remoting.mutex, and CallQueue.mutex for what goes to the thread.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strlen

from dataproxy._core.base.buf cimport Buf, buf_put_slice, buf_put_u8
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_DISK_FULL, ST_LIMIT, ST_OK
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.server.answers cimport answer_give, answer_place
from dataproxy._core.server.entries cimport Entry, Joint, Middle, entry_footprint, entry_free_chain, entry_new
from dataproxy._core.server.rocketmq.ends cimport host_of
from dataproxy._core.server.rocketmq.lines cimport command_ask, command_refuse
from dataproxy._core.server.rocketmq.remoting cimport Remoting, remoting_route
from dataproxy._core.server.session cimport CLOSE_MEMORY, session_source
from dataproxy._core.server.state cimport end_session, mark_dirty
from dataproxy._core.wire.rocketmq.const cimport (
    ANSWER_MESSAGE_ILLEGAL, ANSWER_SERVICE_NOT_AVAILABLE, ANSWER_SUCCESS, ANSWER_SYSTEM_ERROR, CODE_SEND_BATCH,
    FLAG_ONE_WAY, PROPERTIES_MOST, SYS_BORN_V6, SYS_STORE_V6,
)
from dataproxy._core.wire.rocketmq.entry cimport put_entry, stream_of
from dataproxy._core.wire.rocketmq.header cimport Command
from dataproxy._core.wire.rocketmq.send cimport SendRequest, read_send
from dataproxy._core.wire.rocketmq.serve cimport handle_of, is_plain_send, put_place, request_command
from dataproxy._core.wire.rocketmq.stored cimport BatchItem, Host, StoredMessage, put_message_id, read_item

cdef enum:
    ID_MOST = 56
    COMMA = 44


ctypedef struct SentPlace:      # behind the Joint of a request
    int form                    # HeaderForm
    int32_t opaque
    int32_t queue
    Host host


ctypedef struct Sending:        # one request while its entries are made
    ServerLoop* d
    Session* s
    const Request* r
    SendRequest send
    int32_t queue               # that stores it
    Joint* joint
    Entry* first
    Entry* last
    size_t bytes
    int32_t code                # that refuses it
    const char* words
    char text[96]


cdef void send_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Send messages to the store, let the thread decide about them, or refuse them."""
    cdef Sending x
    cdef Command command
    memset(&x, 0, sizeof(Sending))
    x.d, x.s, x.r = d, s, r
    request_command(r, &d.request.scratch, &command)
    if read_send(&command, &x.send) != ST_OK:
        _name_field(&x)
    elif d.profile.service_code:
        x.code, x.words = ANSWER_SERVICE_NOT_AVAILABLE, b"the hub takes no messages now"
    else:
        x.queue = -1
        if is_plain_send(&x.send):
            x.queue = remoting_route(<Remoting*>d.shared.remoting, x.send.topic, x.send.queue)
        if x.queue < 0:
            command_ask(d, s, r)
            return
        _make(&x)
    if x.code == ANSWER_SUCCESS:
        _submit(&x)
        return
    if x.first == NULL:
        free(x.joint)
    entry_free_chain(x.first)
    if not r.version & FLAG_ONE_WAY:
        command_refuse(d, s, r.service, <int32_t>r.serial, x.code, x.words)


cdef void _name_field(Sending* x) noexcept nogil:
    """Refuse a request for a field that is missing, or is no number."""
    cdef size_t n = strlen(x.send.wrong)
    memcpy(x.text, b"the field ", 10)
    memcpy(x.text + 10, x.send.wrong, n)
    memcpy(x.text + 10 + n, b" is missing, or is no number", 29)
    x.code, x.words = ANSWER_SYSTEM_ERROR, x.text


cdef void _make(Sending* x) noexcept nogil:
    """Make the entries of a request."""
    cdef BatchItem item
    x.code = ANSWER_MESSAGE_ILLEGAL
    if x.send.body.n > (<Remoting*>x.d.shared.remoting).max_message:
        x.words = b"the message body is larger than the hub takes"
    elif x.send.properties.n > PROPERTIES_MOST:
        x.words = b"the message properties are longer than 32767 bytes"
    elif not _join(x):
        x.code, x.words = ANSWER_SYSTEM_ERROR, b"no memory is left"
    elif x.r.method == CODE_SEND_BATCH or x.send.batch:
        _items(x)
    else:
        item.flag, item.body, item.properties = x.send.flag, x.send.body, x.send.properties
        if _item(x, &item, x.send.sys_flag & ~(<int32_t>(SYS_BORN_V6 | SYS_STORE_V6))):
            x.code = ANSWER_SUCCESS


cdef bint _join(Sending* x) noexcept nogil:
    """Make what the entries share; False: no memory."""
    cdef SentPlace* place
    x.joint = <Joint*>malloc(sizeof(Joint) + sizeof(SentPlace))
    if x.joint == NULL:
        return False
    memset(x.joint, 0, sizeof(Joint) + sizeof(SentPlace))
    x.joint.answered = not x.r.version & FLAG_ONE_WAY
    place = <SentPlace*>(x.joint + 1)
    place.form, place.opaque, place.queue = x.r.service, <int32_t>x.r.serial, x.queue
    place.host = host_of(&x.s.near)
    return True


cdef void _items(Sending* x) noexcept nogil:
    """Make the entries of a batch."""
    cdef Slice rest = x.send.body
    cdef BatchItem item
    cdef size_t size = 0
    cdef int n = 0
    x.words = b"the batch has no message, or one whose length is not what it says"
    while rest.n:
        if read_item(rest, &item, &size) != ST_OK:
            return
        n += 1
        if n > BATCH_MOST:
            x.words = b"the batch has more than 16384 messages"
            return
        if not _item(x, &item, 0):
            return
        rest = slice_of(rest.p + size, rest.n - size)
    if n > 0:
        x.code = ANSWER_SUCCESS
        relaxed_add(&(<Remoting*>x.d.shared.remoting).batches, 1)


cdef bint _item(Sending* x, const BatchItem* item, int32_t sys_flag) noexcept nogil:
    """Make the entry of one message; False: ``words`` says why not."""
    cdef ServerLoop* d = x.d
    cdef Buf* out = &d.request.entry
    cdef StoredMessage m
    cdef Entry parts
    cdef Entry* entry
    cdef Middle middle
    cdef int status
    memset(&m, 0, sizeof(StoredMessage))
    memset(&parts, 0, sizeof(Entry))
    m.topic, m.flag, m.body, m.properties = x.send.topic, item.flag, item.body, item.properties
    m.born_ms, m.reconsume_times, m.sys_flag = x.send.born_ms, x.send.reconsume_times, sys_flag
    m.born = host_of(&x.s.far)
    parts.stream = stream_of(item.properties)
    out.n = 0
    status = put_entry(out, &m, parts.stream, d.wall_ms, &middle.at)
    if status != ST_OK:
        x.code = ANSWER_MESSAGE_ILLEGAL if status == ST_LIMIT else ANSWER_SYSTEM_ERROR
        x.words = b"the message properties are too long to be stored, or no memory is left"
        return False
    middle.bytes = item.body
    parts.origin = <void*>d
    parts.session = x.s.id
    parts.group = x.send.topic
    parts.partition = <uint32_t>x.queue
    parts.records = 1
    parts.data_time_ms = parts.receive_ms = d.wall_ms
    parts.value = slice_of(out.p, out.n)
    entry = entry_new(&parts, session_source(x.s), d.profile.node_ip, &middle, d.shared.committer.ops)
    if entry == NULL:
        x.code, x.words = ANSWER_SYSTEM_ERROR, b"no memory is left"
        return False
    entry.joint = x.joint
    x.joint.left += 1
    x.joint.holders += 1
    x.bytes += entry_footprint(entry)
    if x.last == NULL:
        x.first = entry
    else:
        x.last.next = entry
    x.last = entry
    return True


cdef void _submit(Sending* x) noexcept nogil:
    """Append the entries to this round's chain."""
    cdef ServerLoop* d = x.d
    if d.chain == NULL:
        d.chain = x.first
    else:
        d.chain_last.next = x.first
    d.chain_last = x.last
    x.s.pending += x.joint.left
    d.outstanding += x.joint.left
    relaxed_store(&d.queued_bytes, relaxed_load(&d.queued_bytes) + <int64_t>x.bytes)


cdef void send_settled(ServerLoop* d, Session* s, Entry* entry) noexcept nogil:
    """Note what came of a message; answer with the last one."""
    cdef Joint* joint = entry.joint
    cdef const SentPlace* place = <const SentPlace*>(joint + 1)
    cdef uint8_t text[ID_MOST]
    if entry.status != ST_OK:
        joint.status = entry.status
    elif joint.status == ST_OK:
        if joint.ids.n:
            joint.status = buf_put_u8(&joint.ids, COMMA)
        else:
            joint.first = entry.offset
        joint.status |= buf_put_slice(&joint.ids, slice_of(text, <size_t>(put_message_id(
            text, &place.host, handle_of(entry.log, entry.offset)) - text)))
    joint.left -= 1
    if s == NULL or joint.left > 0:
        return
    mark_dirty(d, s)            # it may have waited for that alone, to be closed
    if joint.answered:
        _answer(d, s, joint, place)


cdef void _answer(ServerLoop* d, Session* s, const Joint* joint, const SentPlace* place) noexcept nogil:
    """Answer a request."""
    cdef Buf* out = &d.request.reply
    if joint.status == ST_DISK_FULL:
        command_refuse(d, s, place.form, place.opaque, ANSWER_SYSTEM_ERROR, b"the disk of the store is full")
    elif joint.status == ST_LIMIT:
        command_refuse(d, s, place.form, place.opaque, ANSWER_MESSAGE_ILLEGAL,
                       b"the store has no room for another topic or tag")
    elif joint.status != ST_OK:
        command_refuse(d, s, place.form, place.opaque, ANSWER_SYSTEM_ERROR, b"the store refused the message")
    else:
        out.n = 0
        if (put_place(out, place.form, place.opaque, place.queue, slice_of(joint.ids.p, joint.ids.n), joint.first)
                != ST_OK or answer_give(d, s, answer_place(s), slice_of(out.p, out.n), NULL) != ST_OK):
            end_session(d, s, CLOSE_MEMORY)
