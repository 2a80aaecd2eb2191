"""Python access to the pure functions of the wires, for tests and fuzzers."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.snappy.compress cimport pack_block, pack_bound, unpack_block, unpacked_size
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, status_name
from dataproxy._core.wire.api cimport (
    ITEM_LINES, ITEM_OBJECTS, REQ_CALL, Admission, FamilyForm, FrameSpec, NumberedNames, Request, ServerProfile,
    WireEvent, WireOps,
)
from dataproxy._core.wire.inlong.codec cimport inlong_ops
from dataproxy._core.wire.inlong.http.codec cimport http_ops
from dataproxy._core.wire.inlongv1.codec cimport inlongv1_ops
from dataproxy._core.wire.tubemq.codec cimport tubemq_ops


__all__ = ["ProbeError", "Server", "Wire", "pack", "pack_limit", "size_of_packed", "unpack"]


class ProbeError(Exception):
    """A function of the core returned a failure; ``status`` is its number."""

    def __init__(self, status: int) -> None:
        super().__init__((<bytes>status_name(status)).decode())
        self.status = status


cdef bytes _taken(Slice s):
    return s.p[:s.n] if s.n else b""


cdef int _ok(int status) except -100:
    if status < 0:
        raise ProbeError(status)
    return status


cdef class Exact:
    """A copy of some bytes in memory of exactly their size, so that a sanitizer sees every overrun."""

    cdef uint8_t* p
    cdef size_t n

    def __cinit__(self, bytes data):
        self.n = <size_t>len(data)
        self.p = <uint8_t*>malloc(self.n if self.n else 1)
        if self.p == NULL:
            raise MemoryError
        memcpy(self.p, <const char*>data, self.n)

    def __dealloc__(self):
        free(self.p)

    cdef Slice view(self):
        """Return the bytes as a slice that lives as long as this object."""
        return slice_of(self.p, self.n)


cdef class Wire:
    """One wire's table of functions; ``name`` chooses it."""

    cdef const WireOps* ops

    def __cinit__(self, str name="inlong"):
        if name not in ("inlong", "inlongv1", "http", "tubemq"):
            raise ValueError(f"unknown wire {name!r}; known: 'inlong', 'inlongv1', 'http', 'tubemq'")
        if name == "tubemq":
            self.ops = tubemq_ops()
        else:
            self.ops = inlong_ops() if name == "inlong" else inlongv1_ops() if name == "inlongv1" else http_ops()

    @property
    def name(self) -> str:
        """Return the wire's name."""
        return (<bytes>self.ops.name).decode()

    @property
    def head_room(self) -> int:
        """Return the bytes that a frame may need before its body."""
        return self.ops.head_room

    def delimit(self, bytes data, size_t max_frame=524288):
        """Return (status, size) of the first frame of ``data``."""
        cdef size_t size = 0
        cdef Exact exact = Exact(data)
        cdef int status
        with nogil:
            status = self.ops.delimit(exact.p, exact.n, max_frame, &size)
        return status, size

    def parse_reply(self, bytes data):
        """Return one whole reply as a dictionary; raise ProbeError for a malformed one."""
        cdef WireEvent event
        cdef Exact exact = Exact(data)
        cdef int status
        with nogil:
            status = self.ops.parse_reply(exact.p, exact.n, &event)
        _ok(status)
        return {
            "kind": event.kind,
            "msg_type": event.msg_type,
            "seq": event.seq if event.has_seq else None,
            "code": event.code,
            "message": _taken(event.message),
            "node": _taken(event.node),
            "text": _taken(event.text),
            "load": event.load,
            "known": event.known,
            "differed": event.differed,
            "reach": event.reach,
            "closes": bool(event.closes),
            "unsure": bool(event.unsure),
        }

    def family(self, int number):
        """Return whether messages of a family are lines, and whether they can have ids; None for no family."""
        cdef FamilyForm form
        if self.ops.family(number, &form) != ST_OK:
            return None
        return form.items == ITEM_LINES, bool(form.ids)

    def heartbeat(self, int kind, int64_t now_ms):
        """Return the bytes of one heartbeat request."""
        cdef Buf out
        buf_init(&out)
        try:
            _ok(self.ops.heartbeat(kind, now_ms, &out))
            return out.p[:out.n]
        finally:
            buf_free(&out)

    def address(self, bytes request, bytes server):
        """Return a request with the server's name in it."""
        cdef uint8_t* room = <uint8_t*>malloc(<size_t>len(request))
        cdef Exact name = Exact(server)
        if room == NULL:
            raise MemoryError
        try:
            memcpy(room, <const char*>request, <size_t>len(request))
            self.ops.address(room, <size_t>len(request), name.view())
            return room[:len(request)]
        finally:
            free(room)

    @property
    def plays(self) -> tuple:
        """Return which functions it has besides those of every client: heartbeat, server's role."""
        return self.ops.heartbeat != NULL, self.ops.serve != NULL

    def place(self, bytes request, int store, int partition, int64_t token, bytes proof=b""):
        """Return a request with partition and admission in it."""
        cdef Admission admission
        cdef uint8_t* room = <uint8_t*>malloc(<size_t>len(request))
        if room == NULL:
            raise MemoryError
        memset(&admission, 0, sizeof(Admission))
        admission.token = token
        admission.proof_n = <size_t>len(proof)
        memcpy(admission.proof, <const char*>proof, admission.proof_n)
        try:
            memcpy(room, <const char*>request, <size_t>len(request))
            self.ops.place(room, store, partition, &admission)
            return room[:len(request)]
        finally:
            free(room)

    def frame(self, bytes body, bytes attrs, *, int family=7, int items=0, bint compressed=False, uint32_t seq=1,
              uint32_t count=1, int64_t data_time_ms=0, bytes sid=b"", int ack=0, bytes origin=b"",
              int64_t origin_ms=0, bytes sender=b"", size_t proof_n=0, int64_t answer_ms=0, bint undone=False):
        """Return the frame around ``body``; compressed says that the body is one snappy block already.

        ``undone``: return the body again, as ``restore`` makes it of the frame.
        """
        cdef FrameSpec spec
        cdef size_t start = 0
        cdef size_t size = 0
        cdef Exact text = Exact(attrs)
        cdef Exact pack_id = Exact(sid)
        cdef Exact address = Exact(origin)
        cdef Exact name = Exact(sender)
        cdef size_t n = <size_t>len(body)
        cdef uint8_t* room
        cdef int status
        memset(&spec, 0, sizeof(FrameSpec))
        spec.family = family
        spec.items = items
        spec.compressed = compressed
        spec.seq = seq
        spec.count = count
        spec.data_time_ms = data_time_ms
        spec.attrs = text.view()
        spec.id = pack_id.view()
        spec.body = slice_of(<const char*>body, n)
        spec.ack = ack
        spec.origin = address.view()
        spec.origin_ms = origin_ms
        spec.sender = name.view()
        spec.proof_n = proof_n
        spec.answer_ms = answer_ms
        room = <uint8_t*>malloc(self.ops.head_room + n + self.ops.tail_room(&spec))
        if room == NULL:
            raise MemoryError
        try:
            memcpy(room + self.ops.head_room, <const char*>body, n)
            if self.ops.arrange != NULL and items != ITEM_OBJECTS:
                n = self.ops.arrange(&spec, room + self.ops.head_room, n)
                spec.items = ITEM_OBJECTS
            with nogil:
                status = self.ops.frame(&spec, room, n, &start, &size)
            _ok(status)
            if undone:
                with nogil:
                    self.ops.restore(room + self.ops.head_room, n)
                return room[self.ops.head_room:self.ops.head_room + n]
            return room[start:start + size]
        finally:
            free(room)


cdef bint _is_known(void* context, Slice group, Slice stream) noexcept nogil:
    with gil:
        groups = (<Server>context).groups
        return groups is None or _taken(group) in groups


cdef void _look_up(void* context, uint32_t group_num, uint32_t stream_num, NumberedNames* out) noexcept nogil:
    with gil:
        found = (<Server>context).numbers.get(group_num)
        if found is None:
            return
        name, out.translate, streams = found
        out.has_group = True
        out.group = slice_of(<const char*><bytes>name, <size_t>len(name))
        name = streams.get(stream_num)
        if name is not None:
            out.has_stream = True
            out.stream = slice_of(<const char*><bytes>name, <size_t>len(name))


cdef class Server:
    """The server role of a wire; every call reuses the same buffers, as a server loop does."""

    cdef Wire wire
    cdef ServerProfile profile
    cdef Request request
    cdef bytes node
    cdef bytes peer
    cdef object groups
    cdef dict numbers       # group number -> (group, translate, {stream number: stream})

    def __cinit__(self, *, bint compat=False, bint compress_entries=True, int service_code=0, int load=-1,
                  bytes node_ip=b"127.0.0.1", int port=46801, groups=None,
                  dict numbers=None, str wire="inlong", bytes peer=b"127.0.0.1", size_t max_frame=0,
                  uint32_t partitions=1, size_t max_message=1 << 20):
        self.wire = Wire(wire)
        self.peer = peer
        self.node = node_ip
        self.groups = groups
        self.numbers = numbers
        memset(&self.profile, 0, sizeof(ServerProfile))
        memset(&self.request, 0, sizeof(Request))
        self.profile.compat = compat
        self.profile.compress_entries = compress_entries
        self.profile.service_code = service_code
        self.profile.load = load
        self.profile.port = port
        self.profile.max_frame = max_frame
        self.profile.partitions = partitions
        self.profile.max_message = max_message
        self.profile.most_token = -1
        self.profile.peer = slice_of(<const char*>self.peer, <size_t>len(peer))
        self.profile.node_ip = slice_of(<const char*>self.node, <size_t>len(node_ip))
        if groups is not None:
            self.profile.known = _is_known
        if numbers is not None:
            self.profile.numbered = _look_up
        self.profile.context = <void*>self

    def __dealloc__(self):
        buf_free(&self.request.reply)
        buf_free(&self.request.entry)
        buf_free(&self.request.scratch)

    def serve(self, bytes data, int64_t now_ms):
        """Return what a server does with one whole frame as a dictionary."""
        cdef Exact exact = Exact(data)
        cdef Request* r = &self.request
        cdef int status
        with nogil:
            status = self.wire.ops.serve(&self.profile, exact.p, exact.n, now_ms, r)
        _ok(status)
        return {
            "action": {1: "store", 2: "reply", 3: "close", 4: "call"}[r.action],
            "code": r.code,
            "msg_type": r.msg_type,
            "group": _taken(r.group),
            "stream": _taken(r.stream),
            "records": r.records,
            "data_time_ms": r.data_time_ms,
            "order": bool(r.order),
            "closes": bool(r.closes),
            "partition_key": _taken(r.partition_key),
            "reply": r.reply.p[:r.reply.n] if r.reply.n and not r.unanswered else b"",
            "entry": r.entry.p[:r.entry.n] if r.entry.n else b"",
            "call": (r.call_kind, r.serial, r.method, _taken(r.call)) if r.action == REQ_CALL else None,
        }

    def place_of(self) -> int:
        """Return the partition that the request named, -1 if none."""
        return self.request.partition

    def told(self, bytes reply, uint32_t partition, uint64_t offset) -> bytes:
        """Return the answer to a request whose entry was stored there."""
        cdef Exact exact = Exact(reply)
        cdef Buf out
        buf_init(&out)
        try:
            _ok(self.wire.ops.tell_stored(exact.p, exact.n, partition, offset, &out))
            return out.p[:out.n]
        finally:
            buf_free(&out)

    def left(self) -> tuple:
        """Return what `serve` has put into the fields of the request that it does not return."""
        cdef Request* r = &self.request
        return bool(r.heartbeat), bool(r.unanswered), _taken(r.body), r.body_at

    def soil(self) -> None:
        """Fill all fields of the request, as frames of any wire may have left them."""
        cdef Request* r = &self.request
        cdef Buf reply = r.reply, entry = r.entry, scratch = r.scratch
        cdef Slice old = slice_of(b"of the frame before", 19)
        memset(r, 1, sizeof(Request))
        r.group = old
        r.stream = old
        r.partition_key = old
        r.body = old
        r.reply = reply
        r.entry = entry
        r.scratch = scratch

    def serve_many(self, bytes data, int64_t now_ms, int times):
        """Judge the same frame many times, for measurements."""
        cdef Exact exact = Exact(data)
        cdef int _i
        with nogil:
            for _i in range(times):
                self.wire.ops.serve(&self.profile, exact.p, exact.n, now_ms, &self.request)

    def refuse(self, bytes reply, int code, bytes message=None):
        """Return a success reply turned into a refusal."""
        cdef Buf out
        cdef Exact exact = Exact(reply)
        cdef const char* text = NULL
        cdef int status
        if message is not None:
            text = message
        buf_init(&out)
        try:
            with nogil:
                status = self.wire.ops.refuse(exact.p, exact.n, code, text, &out)
            _ok(status)
            return out.p[:out.n]
        finally:
            buf_free(&out)

    def tell_known(self, bytes reply, int64_t known, int64_t differed, int64_t reach):
        """Return a success reply that says what was known before."""
        cdef Buf out
        cdef Exact exact = Exact(reply)
        cdef int status
        buf_init(&out)
        try:
            with nogil:
                status = self.wire.ops.tell_known(exact.p, exact.n, known, differed, reach, &out)
            _ok(status)
            return out.p[:out.n]
        finally:
            buf_free(&out)


def pack(bytes data):
    """Return ``data`` as one snappy block."""
    cdef Buf out
    cdef Exact exact = Exact(data)
    buf_init(&out)
    try:
        _ok(pack_block(exact.p, exact.n, &out))
        return out.p[:out.n]
    finally:
        buf_free(&out)


def pack_limit(size_t n):
    """Return the most bytes that packing ``n`` bytes can give."""
    return pack_bound(n)


def unpack(bytes data, size_t limit):
    """Return the content of one snappy block."""
    cdef Buf out
    cdef Exact exact = Exact(data)
    buf_init(&out)
    try:
        _ok(unpack_block(exact.p, exact.n, limit, &out))
        return out.p[:out.n]
    finally:
        buf_free(&out)


def size_of_packed(bytes data, size_t limit):
    """Return the size of a block's content from its head."""
    cdef size_t size = 0
    cdef Exact exact = Exact(data)
    _ok(unpacked_size(exact.p, exact.n, limit, &size))
    return size
