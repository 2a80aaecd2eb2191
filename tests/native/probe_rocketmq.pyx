"""Python access to the pure functions of the RocketMQ wire, for tests and fuzzers.

Commands and messages are dictionaries; texts and bytes come and go as ``bytes``.  All bytes that are read lie in memory
of exactly their size, so that a sanitizer sees every overrun.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put_slice
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, status_name
from dataproxy._core.wire.rocketmq.frame cimport delimit_frame
from dataproxy._core.wire.rocketmq.header cimport Command, CommandFields, fields_begin, fields_step, read_command
from dataproxy._core.wire.rocketmq.properties cimport property_next, property_value, put_property
from dataproxy._core.wire.rocketmq.pull cimport (
    Pulled, PullRequest, put_pull, put_pulled, read_pull, read_pulled,
)
from dataproxy._core.wire.rocketmq.send cimport Sent, SendRequest, put_send, put_sent, read_send, read_sent
from dataproxy._core.wire.rocketmq.stored cimport (
    BatchItem, Host, StoredMessage, body_checksum, compression_of, item_size, put_item, put_message_id, put_stored,
    read_item, read_message_id, read_stored, stored_size,
)
from dataproxy._core.wire.rocketmq.write cimport (
    CommandWriter, write_begin, write_end, write_field, write_header,
)

__all__ = [
    "ProbeError", "Stream", "batch", "checksum", "compression", "message_id", "properties", "property_of", "put",
    "put_properties", "read", "read_batch", "read_id", "read_stored_messages", "send_many", "stored", "take", "write",
]


class ProbeError(Exception):
    """A function of the core returned a failure; ``status`` is its number, ``field`` what it named."""

    def __init__(self, status: int, field: str = "") -> None:
        super().__init__((<bytes>status_name(status)).decode(), field)
        self.status = status
        self.field = field


cdef bytes _taken(Slice s):
    return s.p[:s.n] if s.n else b""


cdef Slice _given(object data):
    return slice_of(<const char*><bytes>data, <size_t>len(data))


cdef int _ok(int status, const char* wrong=NULL) except -100:
    if status != ST_OK:
        raise ProbeError(status, "" if wrong == NULL else (<bytes>wrong).decode())
    return status


cdef class Exact:
    """A copy of some bytes in memory of exactly their size."""

    cdef uint8_t* p
    cdef size_t n

    def __cinit__(self, size_t n, bytes data=None):
        self.n = n
        self.p = <uint8_t*>malloc(n if n else 1)
        if self.p == NULL:
            raise MemoryError
        if data is not None:
            memcpy(self.p, <const char*>data, n)

    def __dealloc__(self):
        free(self.p)

    cdef Slice view(self):
        return slice_of(self.p, self.n)


cdef class Memory:
    """A buffer of the core that is freed with this object."""

    cdef Buf b

    def __cinit__(self):
        buf_init(&self.b)

    def __dealloc__(self):
        buf_free(&self.b)

    cdef bytes content(self):
        return self.b.p[:self.b.n] if self.b.n else b""


cdef class Stream:
    """Finds frames in bytes that come in pieces."""

    cdef bytearray rest
    cdef size_t most

    def __init__(self, most=0):
        self.rest = bytearray()
        self.most = most

    def push(self, bytes piece):
        """Take a piece; return the frames that are whole now.  Raises ProbeError."""
        cdef int status
        cdef size_t size
        cdef Exact exact
        self.rest += piece
        found = []
        while True:
            exact = Exact(<size_t>len(self.rest), bytes(self.rest))
            with nogil:
                status = delimit_frame(exact.p, exact.n, self.most, &size)
            if status > 0:
                assert size == 0 or size > exact.n
                return found
            _ok(status)
            found.append(_taken(slice_of(exact.p, size)))
            del self.rest[:size]


cdef class Parsed:
    """A command, with the memory that it borrows from."""

    cdef Exact exact
    cdef Memory scratch
    cdef Command command

    def __init__(self, bytes frame):
        cdef size_t size
        cdef int status
        self.exact = Exact(<size_t>len(frame), frame)
        self.scratch = Memory()
        _ok(delimit_frame(self.exact.p, self.exact.n, 0, &size))
        assert size == self.exact.n
        with nogil:
            status = read_command(self.exact.p, size, &self.scratch.b, &self.command)
        _ok(status)


def read(bytes frame):
    """Return a command as a dictionary; raise ProbeError if it is none."""
    cdef Parsed parsed = Parsed(frame)
    cdef Command* c = &parsed.command
    cdef CommandFields f
    cdef Slice name, value
    passes = []
    for _ in range(2):          # a second reading gives the same
        fields = []
        fields_begin(&f, c)
        while fields_step(&f, &name, &value):
            fields.append((_taken(name), _taken(value)))
        passes.append(fields)
    assert passes[0] == passes[1]
    assert parsed.scratch.b.n <= parsed.exact.n
    return {"form": c.form, "code": c.code, "language": c.language, "version": c.version,
            "opaque": c.opaque if c.numbered else None, "flag": c.flag, "remark": _taken(c.remark),
            "fields": passes[0] if c.extended else None, "body": _taken(c.body)}


cdef Command _head(dict d):
    cdef Command c
    memset(&c, 0, sizeof(Command))
    c.form, c.code, c.language, c.version = d["form"], d["code"], d["language"], d["version"]
    c.opaque, c.flag, c.remark = d["opaque"], d["flag"], _given(d.get("remark", b""))
    c.extended = d.get("fields", ()) is not None
    return c


def write(dict d):
    """Return the frame of a command."""
    cdef Command head = _head(d)
    cdef CommandWriter w
    cdef Memory memory = Memory()
    write_begin(&w, &memory.b, &head)
    for name, value in d["fields"] or ():
        write_field(&w, _given(name), _given(value))
    write_header(&w)
    if w.status == ST_OK:
        w.status = buf_put_slice(&memory.b, _given(d.get("body", b"")))
    _ok(write_end(&w))
    return memory.content()


cdef dict _send(Parsed parsed):
    cdef SendRequest s
    cdef int status
    with nogil:
        status = read_send(&parsed.command, &s)
    _ok(status, s.wrong)
    return {"producerGroup": _taken(s.producer_group), "topic": _taken(s.topic),
            "defaultTopic": _taken(s.default_topic), "defaultTopicQueueNums": s.default_queues, "queueId": s.queue,
            "sysFlag": s.sys_flag, "bornTimestamp": s.born_ms, "flag": s.flag, "properties": _taken(s.properties),
            "reconsumeTimes": s.reconsume_times, "unitMode": bool(s.unit), "maxReconsumeTimes": s.max_reconsume,
            "batch": bool(s.batch), "bname": _taken(s.broker), "body": _taken(s.body)}


cdef dict _sent(Parsed parsed):
    cdef Sent s
    cdef int status = read_sent(&parsed.command, &s)
    _ok(status, s.wrong)
    return {"code": s.code, "stored": bool(s.stored), "remark": _taken(s.remark), "msgId": _taken(s.ids),
            "queueId": s.queue, "queueOffset": s.offset, "transactionId": _taken(s.transaction)}


cdef dict _pull(Parsed parsed):
    cdef PullRequest p
    cdef int status
    with nogil:
        status = read_pull(&parsed.command, &p)
    _ok(status, p.wrong)
    return {"consumerGroup": _taken(p.group), "topic": _taken(p.topic), "queueId": p.queue, "queueOffset": p.offset,
            "maxMsgNums": p.most, "sysFlag": p.sys_flag, "commitOffset": p.commit_offset,
            "suspendTimeoutMillis": p.suspend_ms, "subVersion": p.sub_version, "subscription": _taken(p.subscription),
            "expressionType": _taken(p.expression_type), "bname": _taken(p.broker)}


cdef dict _pulled(Parsed parsed):
    cdef Pulled p
    cdef int status = read_pulled(&parsed.command, &p)
    _ok(status, p.wrong)
    return {"code": p.code, "offsets": bool(p.offsets), "remark": _taken(p.remark),
            "suggestWhichBrokerId": p.next_broker, "nextBeginOffset": p.next_offset, "minOffset": p.min_offset,
            "maxOffset": p.max_offset, "messages": _taken(p.messages)}


def take(str kind, bytes frame):
    """Return what a frame says as a ``send``, ``sent``, ``pull`` or ``pulled``."""
    cdef Parsed parsed = Parsed(frame)
    if kind == "send":
        return _send(parsed)
    if kind == "sent":
        return _sent(parsed)
    return _pull(parsed) if kind == "pull" else _pulled(parsed)


def send_many(bytes frame, int times):
    """Read a request's header and fields so many times."""
    cdef Exact exact = Exact(<size_t>len(frame), frame)
    cdef Memory scratch = Memory()
    cdef Command command
    cdef SendRequest s
    cdef int bad = 0
    with nogil:
        for _ in range(times):
            if (read_command(exact.p, exact.n, &scratch.b, &command) != ST_OK or read_send(&command, &s) != ST_OK):
                bad += 1
    return bad


def put(str kind, dict head, dict d):
    """Return the frame of a ``send``, ``sent``, ``pull`` or ``pulled``."""
    cdef Command c = _head(head)
    cdef Memory memory = Memory()
    cdef SendRequest s
    cdef Sent t
    cdef PullRequest p
    cdef Pulled u
    if kind == "send":
        s.producer_group, s.topic, s.default_topic = (
            _given(d["producerGroup"]), _given(d["topic"]), _given(d["defaultTopic"]))
        s.default_queues, s.queue, s.sys_flag = d["defaultTopicQueueNums"], d["queueId"], d["sysFlag"]
        s.born_ms, s.flag, s.properties = d["bornTimestamp"], d["flag"], _given(d["properties"])
        s.reconsume_times, s.unit, s.max_reconsume = d["reconsumeTimes"], d["unitMode"], d["maxReconsumeTimes"]
        s.batch, s.broker, s.body = d["batch"], _given(d["bname"]), _given(d["body"])
        _ok(put_send(&memory.b, &c, &s))
    elif kind == "sent":
        t.code, t.remark, t.ids, t.queue = d["code"], _given(d["remark"]), _given(d["msgId"]), d["queueId"]
        t.offset, t.transaction = d["queueOffset"], _given(d["transactionId"])
        _ok(put_sent(&memory.b, &c, &t))
    elif kind == "pull":
        p.group, p.topic, p.queue = _given(d["consumerGroup"]), _given(d["topic"]), d["queueId"]
        p.offset, p.most, p.sys_flag = d["queueOffset"], d["maxMsgNums"], d["sysFlag"]
        p.commit_offset, p.suspend_ms, p.sub_version = d["commitOffset"], d["suspendTimeoutMillis"], d["subVersion"]
        p.subscription, p.expression_type = _given(d["subscription"]), _given(d["expressionType"])
        p.broker = _given(d["bname"])
        _ok(put_pull(&memory.b, &c, &p))
    else:
        u.code, u.remark, u.next_broker = d["code"], _given(d["remark"]), d["suggestWhichBrokerId"]
        u.next_offset, u.min_offset, u.max_offset = d["nextBeginOffset"], d["minOffset"], d["maxOffset"]
        u.messages = _given(d["messages"])
        _ok(put_pulled(&memory.b, &c, &u))
    return memory.content()


cdef tuple _as_host(const Host* h):
    return (<const char*>h.address)[:h.n], h.port


cdef Host _host(tuple value):
    cdef Host h
    h.n, h.port = len(value[0]), value[1]
    memcpy(h.address, <const char*><bytes>value[0], h.n)
    return h


def read_stored_messages(bytes data):
    """Return the messages of a pull's body; raise ProbeError at the first that is broken or not whole."""
    cdef Exact exact = Exact(<size_t>len(data), data)
    cdef Slice rest = exact.view()
    cdef StoredMessage m
    cdef size_t size
    found = []
    while rest.n:
        _ok(read_stored(rest, &m, &size))
        assert stored_size(&m) == size
        rest = slice_of(rest.p + size, rest.n - size)
        found.append({
            "queueId": m.queue, "flag": m.flag, "queueOffset": m.queue_offset, "physicalOffset": m.physical_offset,
            "sysFlag": m.sys_flag, "bornTimestamp": m.born_ms, "bornHost": _as_host(&m.born),
            "storeTimestamp": m.stored_ms, "storeHost": _as_host(&m.store), "reconsumeTimes": m.reconsume_times,
            "preparedTransactionOffset": m.prepared_offset, "bodyCRC": m.checksum, "body": _taken(m.body),
            "topic": _taken(m.topic), "properties": _taken(m.properties)})
    return found


def stored(dict d):
    """Return a stored message."""
    cdef StoredMessage m
    cdef Exact room
    m.queue, m.flag, m.queue_offset, m.physical_offset = (
        d["queueId"], d["flag"], d["queueOffset"], d["physicalOffset"])
    m.sys_flag, m.born_ms, m.born = d["sysFlag"], d["bornTimestamp"], _host(d["bornHost"])
    m.stored_ms, m.store, m.reconsume_times = d["storeTimestamp"], _host(d["storeHost"]), d["reconsumeTimes"]
    m.prepared_offset, m.body = d["preparedTransactionOffset"], _given(d["body"])
    m.topic, m.properties = _given(d["topic"]), _given(d["properties"])
    room = Exact(stored_size(&m))
    assert put_stored(room.p, &m) == room.p + room.n
    return _taken(room.view())


def message_id(tuple host, int64_t offset):
    """Return a message's id."""
    cdef uint8_t text[56]
    cdef Host h = _host(host)
    return _taken(slice_of(text, <size_t>(put_message_id(text, &h, offset) - text)))


def read_id(bytes text):
    """Return (host, offset) of an id, or None."""
    cdef Host h
    cdef int64_t offset = 0
    cdef Exact exact = Exact(<size_t>len(text), text)
    return (_as_host(&h), offset) if read_message_id(exact.view(), &h, &offset) else None


def read_batch(bytes body):
    """Return the items of a batch; raise ProbeError at the first that is broken."""
    cdef Exact exact = Exact(<size_t>len(body), body)
    cdef Slice rest = exact.view()
    cdef BatchItem item
    cdef size_t size
    found = []
    while rest.n:
        _ok(read_item(rest, &item, &size))
        rest = slice_of(rest.p + size, rest.n - size)
        found.append({"flag": item.flag, "body": _taken(item.body), "properties": _taken(item.properties)})
    return found


def batch(list items):
    """Return the body of a batch."""
    cdef BatchItem item
    cdef Exact room
    parts = []
    for d in items:
        item.flag, item.body, item.properties = d["flag"], _given(d["body"]), _given(d["properties"])
        room = Exact(item_size(&item))
        assert put_item(room.p, &item) == room.p + room.n
        parts.append(_taken(room.view()))
    return b"".join(parts)


def properties(bytes text):
    """Return (name, value) of all properties."""
    cdef Exact exact = Exact(<size_t>len(text), text)
    cdef Slice rest = exact.view()
    cdef Slice name, value
    found = []
    while property_next(&rest, &name, &value):
        found.append((_taken(name), _taken(value)))
    return found


def property_of(bytes text, bytes name):
    """Return the value of a property, or None."""
    cdef Exact exact = Exact(<size_t>len(text), text)
    cdef Slice value
    return _taken(value) if property_value(exact.view(), _given(name), &value) else None


def put_properties(list pairs):
    """Return the text of properties."""
    cdef Memory memory = Memory()
    for name, value in pairs:
        _ok(put_property(&memory.b, 0, _given(name), _given(value)))
    return memory.content()


def checksum(bytes body):
    """Return the checksum of a body."""
    return body_checksum(_given(body))


def compression(int sys_flag):
    """Return how a body is compressed, as a number."""
    return compression_of(sys_flag)
