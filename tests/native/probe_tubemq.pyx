"""Python access to the pure functions of the TubeMQ wire, for tests and fuzzers.

Messages are dictionaries with the names of the schema's fields; bytes come and go as ``bytes``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.crc cimport crc32, crc32_by_tables, crc32_has_processor
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, status_name
from dataproxy._core.wire.tubemq.commit cimport (
    CommitRequest, Committed, commit_size, committed_size, put_commit, put_committed, read_commit, read_committed,
)
from dataproxy._core.wire.tubemq.const cimport INDEX_SIZE, PAYLOAD_MOST, RECORD_HEAD
from dataproxy._core.wire.tubemq.deliver cimport TubeParts, parts_checksum, put_pack
from dataproxy._core.wire.tubemq.frame cimport FrameScan, cut_frame, frame_heads, join_frame, scan_frame
from dataproxy._core.wire.tubemq.get cimport (
    GetRequest, Got, TubeMessage, get_size, got_next, got_size, put_get, put_got, read_get, read_got,
)
from dataproxy._core.wire.tubemq.payload cimport (
    attribute_value, filter_code, payload_checksum, payload_size, put_attribute, split_payload,
)
from dataproxy._core.wire.tubemq.record cimport (
    IndexEntry, Record, put_index_entry, put_record_head, read_index_entry, read_record,
)
from dataproxy._core.wire.tubemq.rpc cimport (
    Answer, Call, answer_size, call_size, exception_size, put_answer, put_call, put_exception, read_answer, read_call,
)
from dataproxy._core.wire.tubemq.send cimport (
    SendRequest, Sent, put_send, put_sent, read_send, read_sent, send_size, sent_size,
)
from dataproxy._core.wire.tubemq.stored cimport StoredMessage, put_attribute_head, put_stored, read_stored as _read_back
from dataproxy._core.wire.tubemq.stored cimport stored_id

__all__ = [
    "ProbeError", "Stream", "answer", "attribute", "call", "checksum", "code_of_filter", "crc", "exception", "frame",
    "index_entry", "kept", "kept_head", "kept_id", "pack", "payload", "read", "read_answers", "read_calls",
    "read_index", "read_kept", "read_stored", "record", "split", "write",
]


class ProbeError(Exception):
    """A function of the core returned a failure; ``status`` is its number."""

    def __init__(self, status: int) -> None:
        super().__init__((<bytes>status_name(status)).decode())
        self.status = status


cdef bytes _taken(Slice s):
    return s.p[:s.n] if s.n else b""


cdef Slice _given(object data):
    return slice_of(<const char*><bytes>data, <size_t>len(data))


cdef int _ok(int status) except -100:
    if status != ST_OK:
        raise ProbeError(status)
    return status


cdef class Exact:
    """A copy of some bytes in memory of exactly their size, so that a sanitizer sees every overrun."""

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
        """Return the bytes as a slice that lives as long as this object."""
        return slice_of(self.p, self.n)

    cdef bytes filled(self, const uint8_t* end):
        """Return the bytes; they were written up to their last one."""
        assert end == self.p + self.n, (end - self.p, self.n)
        return self.p[:self.n]


cdef class Stream:
    """Finds frames in bytes that come in pieces."""

    cdef FrameScan scan
    cdef bytearray rest
    cdef size_t most

    def __init__(self, most=PAYLOAD_MOST):
        self.rest = bytearray()
        self.most = most
        memset(&self.scan, 0, sizeof(FrameScan))

    def push(self, bytes piece):
        """Take a piece; return (serial, payload) of each frame that is whole now.  Raises ProbeError."""
        cdef int status
        cdef Exact exact
        cdef size_t at = 0
        self.rest += piece
        exact = Exact(<size_t>len(self.rest))
        memcpy(exact.p, <const char*>self.rest, exact.n)
        found = []
        while True:
            with nogil:
                status = scan_frame(&self.scan, exact.p + at, exact.n - at, self.most)
            if status != ST_OK:
                del self.rest[:at]
                if status > 0:
                    return found
                _ok(status)
            found.append((self.scan.serial, _taken(join_frame(exact.p + at, &self.scan))))
            at += self.scan.at
            memset(&self.scan, 0, sizeof(FrameScan))

    def overwrite(self, at, bytes data):
        """Change bytes that have come already."""
        self.rest[at:at + len(data)] = data

    def ends(self, bytes piece):
        """Return whether the frame is whole with this piece, as far as only its end is looked at."""
        cdef Exact exact
        self.rest += piece
        exact = Exact(<size_t>len(self.rest), bytes(self.rest))
        return scan_frame(&self.scan, exact.p, exact.n, self.most) == ST_OK

    @property
    def looked(self) -> int:
        """Return how many bytes of the frame that is not whole were looked at."""
        return self.scan.at


def frame(uint32_t serial, bytes payload):
    """Return a payload as a frame."""
    cdef size_t n = <size_t>len(payload)
    cdef size_t heads = frame_heads(n)
    cdef Exact room = Exact(heads + n)
    memcpy(room.p + heads, <const char*>payload, n)
    cut_frame(room.p, serial, n)
    return _taken(room.view())


def call(int32_t service, int32_t version, int32_t method, timeout, bytes request):
    """Return the payload of a request."""
    cdef Call c
    cdef Exact room
    cdef size_t n = <size_t>len(request)
    cdef uint8_t* to
    memset(&c, 0, sizeof(Call))
    c.service, c.version, c.method, c.timeout_ms = service, version, method, timeout
    room = Exact(call_size(&c, n))
    to = put_call(room.p, &c, n)
    memcpy(to, <const char*>request, n)
    return room.filled(to + n)


def answer(int32_t method, bytes data):
    """Return the payload of a success."""
    cdef size_t n = <size_t>len(data)
    cdef Exact room = Exact(answer_size(method, n))
    cdef uint8_t* to = put_answer(room.p, method, n)
    memcpy(to, <const char*>data, n)
    return room.filled(to + n)


def exception(int status, bytes name, bytes trace):
    """Return the payload of an exception."""
    cdef Exact room = Exact(exception_size(status, _given(name), _given(trace)))
    return room.filled(put_exception(room.p, status, _given(name), _given(trace)))


def read_calls(bytes payload):
    """Return a request's parts as a dictionary; raise ProbeError if it is none."""
    cdef Call c
    cdef Exact exact = Exact(<size_t>len(payload), payload)
    _ok(read_call(exact.view(), &c))
    return {"flag": c.flag, "serviceType": c.service, "protocolVer": c.version, "method": c.method,
            "timeout": c.timeout_ms, "request": _taken(c.request)}


def read_answers(bytes payload):
    """Return an answer's parts as a dictionary; raise ProbeError if it is none."""
    cdef Answer a
    cdef Exact exact = Exact(<size_t>len(payload), payload)
    _ok(read_answer(exact.view(), &a))
    if a.status == 0:
        return {"status": 0, "method": a.method, "data": _taken(a.data)}
    return {"status": a.status, "exceptionName": _taken(a.exception), "stackTrace": _taken(a.trace)}


cdef dict _read_get(Slice data):
    cdef GetRequest g
    _ok(read_get(data, &g))
    return {"clientId": _taken(g.client), "partitionId": g.partition, "groupName": _taken(g.group),
            "topicName": _taken(g.topic), "lastPackConsumed": bool(g.consumed), "manualCommitOffset": bool(g.manual),
            "escFlowCtrl": bool(g.escape)}


cdef dict _read_got(Slice data):
    cdef Got g
    cdef TubeMessage m
    cdef Slice rest
    _ok(read_got(data, &g))
    rest = g.data
    messages = []
    while got_next(&rest, &m):
        messages.append({"messageId": m.id, "checkSum": m.checksum, "payLoadData": _taken(m.payload), "flag": m.flag})
    assert (g.n, g.bytes) == (len(messages), sum(len(one["payLoadData"]) for one in messages))
    return {"success": bool(g.success), "errCode": g.code, "errMsg": _taken(g.text), "messages": messages,
            "currOffset": g.offset, "minLimitTime": g.wait_ms, "escFlowCtrl": bool(g.escape),
            "currDataDlt": g.backlog, "requireSlow": bool(g.slow), "maxOffset": g.max_offset}


cdef dict _read_send(Slice data):
    cdef SendRequest s
    _ok(read_send(data, &s))
    found = {"clientId": _taken(s.client), "topicName": _taken(s.topic), "partitionId": s.partition,
             "data": _taken(s.payload), "flag": s.flag, "checkSum": s.checksum, "sentAddr": s.address,
             "msgType": _taken(s.type), "msgTime": _taken(s.time)}
    if s.has_visit:
        found["authInfo"] = {"visitAuthorizedToken": s.visit, "authAuthorizedToken": _taken(s.token)}
    return found


cdef dict _read_sent(Slice data):
    cdef Sent s
    _ok(read_sent(data, &s))
    return {"success": bool(s.success), "errCode": s.code, "errMsg": _taken(s.text), "requireAuth": bool(s.wants_auth),
            "messageId": s.id, "appendTime": s.time_ms, "appendOffset": s.offset}


cdef dict _read_commit(Slice data):
    cdef CommitRequest c
    _ok(read_commit(data, &c))
    return {"clientId": _taken(c.client), "topicName": _taken(c.topic), "partitionId": c.partition,
            "groupName": _taken(c.group), "lastPackConsumed": bool(c.consumed)}


cdef dict _read_committed(Slice data):
    cdef Committed c
    _ok(read_committed(data, &c))
    return {"success": bool(c.success), "errCode": c.code, "errMsg": _taken(c.text), "currOffset": c.offset,
            "maxOffset": c.max_offset}


def read(str name, bytes data):
    """Return the fields of a message that compiled code reads; raise ProbeError if it is broken."""
    cdef Exact exact = Exact(<size_t>len(data), data)
    if name == "GetMessageRequestC2B":
        return _read_get(exact.view())
    if name == "GetMessageResponseB2C":
        return _read_got(exact.view())
    if name == "SendMessageRequestP2B":
        return _read_send(exact.view())
    if name == "SendMessageResponseB2P":
        return _read_sent(exact.view())
    if name == "CommitOffsetRequestC2B":
        return _read_commit(exact.view())
    if name == "CommitOffsetResponseB2C":
        return _read_committed(exact.view())
    raise ValueError(name)


cdef bytes _write_get(dict f):
    cdef GetRequest g
    cdef Exact room
    g.client, g.group, g.topic = _given(f["clientId"]), _given(f["groupName"]), _given(f["topicName"])
    g.partition = f["partitionId"]
    g.consumed, g.manual, g.escape = f["lastPackConsumed"], f["manualCommitOffset"], f["escFlowCtrl"]
    room = Exact(get_size(&g))
    return room.filled(put_get(room.p, &g))


cdef bytes _write_got(dict f):
    cdef Got g
    cdef Exact room
    cdef size_t n = <size_t>len(f["messages"]), i
    cdef TubeMessage* messages = <TubeMessage*>calloc(n + 1, sizeof(TubeMessage))
    try:
        for i, one in enumerate(f["messages"]):
            messages[i].id, messages[i].checksum, messages[i].flag = one["messageId"], one["checkSum"], one["flag"]
            messages[i].payload = _given(one["payLoadData"])
        g.success, g.code, g.text = f["success"], f["errCode"], _given(f["errMsg"])
        g.offset, g.max_offset, g.backlog = f["currOffset"], f["maxOffset"], f["currDataDlt"]
        g.wait_ms, g.escape, g.slow = f["minLimitTime"], f["escFlowCtrl"], f["requireSlow"]
        room = Exact(got_size(&g, messages, n))
        return room.filled(put_got(room.p, &g, messages, n))
    finally:
        free(messages)


cdef bytes _write_send(dict f):
    cdef SendRequest s
    cdef Exact room
    memset(&s, 0, sizeof(SendRequest))
    s.client, s.topic, s.payload = _given(f["clientId"]), _given(f["topicName"]), _given(f["data"])
    s.partition, s.flag, s.checksum, s.address = f["partitionId"], f["flag"], f["checkSum"], f["sentAddr"]
    s.type, s.time = _given(f["msgType"]), _given(f["msgTime"])
    if "authInfo" in f:
        s.has_visit, s.visit = True, f["authInfo"]["visitAuthorizedToken"]
        s.token = _given(f["authInfo"]["authAuthorizedToken"])
    room = Exact(send_size(&s))
    return room.filled(put_send(room.p, &s))


cdef bytes _write_sent(dict f):
    cdef Sent s
    cdef Exact room
    s.success, s.code, s.text, s.wants_auth = f["success"], f["errCode"], _given(f["errMsg"]), f["requireAuth"]
    s.id, s.time_ms, s.offset = f["messageId"], f["appendTime"], f["appendOffset"]
    room = Exact(sent_size(&s))
    return room.filled(put_sent(room.p, &s))


cdef bytes _write_commit(dict f):
    cdef CommitRequest c
    cdef Exact room
    c.client, c.topic, c.group = _given(f["clientId"]), _given(f["topicName"]), _given(f["groupName"])
    c.partition, c.consumed = f["partitionId"], f["lastPackConsumed"]
    room = Exact(commit_size(&c))
    return room.filled(put_commit(room.p, &c))


cdef bytes _write_committed(dict f):
    cdef Committed c
    cdef Exact room
    c.success, c.code, c.text = f["success"], f["errCode"], _given(f["errMsg"])
    c.offset, c.max_offset = f["currOffset"], f["maxOffset"]
    room = Exact(committed_size(&c))
    return room.filled(put_committed(room.p, &c))


def write(str name, dict fields):
    """Return a message that compiled code writes."""
    if name == "GetMessageRequestC2B":
        return _write_get(fields)
    if name == "GetMessageResponseB2C":
        return _write_got(fields)
    if name == "SendMessageRequestP2B":
        return _write_send(fields)
    if name == "SendMessageResponseB2P":
        return _write_sent(fields)
    if name == "CommitOffsetRequestC2B":
        return _write_commit(fields)
    if name == "CommitOffsetResponseB2C":
        return _write_committed(fields)
    raise ValueError(name)


def split(int32_t flag, bytes data):
    """Return (attribute, body) of a payload; None if the attribute does not fit."""
    cdef Slice attribute, body
    cdef Exact exact = Exact(<size_t>len(data), data)
    return (_taken(attribute), _taken(body)) if split_payload(flag, exact.view(), &attribute, &body) else None


def payload(bytes attribute, bytes body):
    """Return (flag, payload)."""
    cdef int32_t flag = 0
    cdef size_t n = <size_t>len(body)
    cdef Exact room = Exact(payload_size(_given(attribute), n))
    cdef uint8_t* to = put_attribute(room.p, _given(attribute), &flag)
    memcpy(to, <const char*>body, n)
    return flag, room.filled(to + n)


def checksum(bytes data):
    """Return the checksum of a payload."""
    return payload_checksum(_given(data))


def crc(bytes data, uint32_t before=0, bint tables=False):
    """Return the CRC-32 of bytes that follow those with the checksum ``before``."""
    if tables:
        return crc32_by_tables(before, <const char*>data, <size_t>len(data))
    return crc32(before, <const char*>data, <size_t>len(data))


def crc_by_processor():
    """Return whether ``crc`` uses the processor's multiplication."""
    return bool(crc32_has_processor())


def attribute(bytes text, bytes key):
    """Return the value of a key in an attribute text, or None."""
    cdef Slice value
    cdef Exact exact = Exact(<size_t>len(text), text)
    return _taken(value) if attribute_value(exact.view(), _given(key), &value) else None


def code_of_filter(bytes item):
    """Return what brokers compare of a filter item."""
    cdef Exact exact = Exact(<size_t>len(item), item)
    return filter_code(exact.view())


def record(dict f):
    """Return a stored record."""
    cdef Record r
    cdef Exact room = Exact(<size_t>RECORD_HEAD)
    r.checksum, r.partition, r.offset, r.received_ms = (
        f["checksum"], f["partition_id"], f["logic_offset"], f["received_ms"])
    r.address, r.key_code, r.id, r.flag = f["report_addr"], f["key_code"], f["message_id"], f["flag"]
    r.payload = _given(f["payload"])
    put_record_head(room.p, &r)
    return _taken(room.view()) + f["payload"]


def read_stored(bytes data):
    """Return (fields, size) of the first stored record; raise ProbeError, with a positive status if more is needed."""
    cdef Record r
    cdef size_t size = 0
    cdef Exact exact = Exact(<size_t>len(data), data)
    _ok(read_record(exact.view(), &r, &size))
    return {"checksum": r.checksum, "partition_id": r.partition, "logic_offset": r.offset,
            "received_ms": r.received_ms, "report_addr": r.address, "key_code": r.key_code, "message_id": r.id,
            "flag": r.flag, "payload": _taken(r.payload)}, size


def index_entry(dict f):
    """Return an entry of an index."""
    cdef IndexEntry e
    cdef Exact room = Exact(<size_t>INDEX_SIZE)
    e.partition, e.at, e.size = f["partition_id"], f["data_offset"], f["data_size"]
    e.key_code, e.received_ms = f["key_code"], f["received_ms"]
    put_index_entry(room.p, &e)
    return _taken(room.view())


def read_index(bytes data):
    """Return the fields of an entry of an index."""
    cdef IndexEntry e
    cdef Exact exact = Exact(<size_t>INDEX_SIZE, data)
    read_index_entry(exact.p, &e)
    return {"partition_id": e.partition, "data_offset": e.at, "data_size": e.size, "key_code": e.key_code,
            "received_ms": e.received_ms}


def kept(bytes request, int64_t now_ms):
    """Return the container in which the message of a request is stored."""
    cdef SendRequest send
    cdef Buf out
    cdef Slice body
    cdef size_t at = 0
    _ok(read_send(_given(request), &send))
    buf_init(&out)
    try:
        _ok(put_stored(&out, &send, now_ms, &body, &at))
        return out.p[:at] + _taken(body) + out.p[at:out.n]
    finally:
        buf_free(&out)


def read_kept(bytes container):
    """Return (flag, head, body, checksum) of a stored message; -1: no checksum is kept."""
    cdef StoredMessage found
    cdef Buf scratch
    buf_init(&scratch)
    try:
        _ok(_read_back(_given(container), &scratch, &found))
        return found.flag, _taken(found.head), _taken(found.body), found.checksum
    finally:
        buf_free(&scratch)


def kept_head(bytes stream, bytes time):
    """Return what stands before a message of another protocol."""
    cdef Buf out
    buf_init(&out)
    try:
        _ok(put_attribute_head(&out, _given(stream), _given(time)))
        return out.p[:out.n]
    finally:
        buf_free(&out)


def kept_id(uint32_t partition, uint64_t offset):
    """Return the id of a message by its place."""
    return stored_id(partition, offset)


def pack(uint32_t serial, dict fields, list parts):
    """Return the frame of an answer with messages [(id, flag, head, body)]."""
    cdef TubeParts* made = <TubeParts*>calloc(len(parts) + 1, sizeof(TubeParts))
    cdef Got g
    cdef Buf out
    cdef size_t i
    buf_init(&out)
    memset(&g, 0, sizeof(Got))
    g.success, g.code, g.text = True, 200, _given(b"OK!")
    g.offset, g.max_offset, g.backlog = fields["offset"], fields["max_offset"], fields["backlog"]
    try:
        for i in range(<size_t>len(parts)):
            made[i].id, made[i].flag = parts[i][0], parts[i][1]
            made[i].head, made[i].body = _given(parts[i][2]), _given(parts[i][3])
            made[i].checksum = parts_checksum(&made[i])
        _ok(put_pack(&out, serial, &g, made, <size_t>len(parts)))
        return out.p[:out.n]
    finally:
        buf_free(&out)
        free(made)
