"""InLongMsg containers as Python values: what a hub stores and what a consumer reads."""

from collections import namedtuple

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put, buf_put_be32, buf_reserve
from dataproxy._core.base.column cimport Bytes
from dataproxy._core.base.snappy.compress cimport pack_block
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_EOF, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport store_be32
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LENGTH, FrameSpec
from dataproxy._core.wire.inlong.const cimport EXT_NAMES
from dataproxy._core.wire.inlong.container cimport (
    MAX_UNPACKED,
    Container,
    GroupPlace,
    close_group_text,
    container_group,
    container_open,
    container_record,
    open_group_text,
    put_container_head,
    put_container_magic,
    put_payload,
    put_text,
)
from dataproxy._core.wire.inlong.encode cimport FRAME_HEAD_ROOM, frame_around, frame_tail_room

from dataproxy.escapes import ESCAPED_KEYS, unescape_attrs

__all__ = ["Group", "Message", "Records", "Runs", "decode", "encode", "records", "runs"]

Group = namedtuple("Group", ["attrs", "records"])
Group.__doc__ = "Records (bytes) that have the same attributes (a dictionary of texts)."

Message = namedtuple("Message", ["version", "create_time_ms", "record_count", "compressed", "groups"])
Message.__doc__ = "One container: version 0 to 4, time (-1 if none), written record count (0 if none), groups."

cdef str BLANKS = "".join(map(chr, range(33)))


cdef object _broken(const char* reason):
    from dataproxy.errors import RemoteProtocolError
    text = (<bytes>reason).decode()
    return RemoteProtocolError(f"not a valid InLongMsg container: {text}", retriable=False, details={"reason": text})


cdef object _refused(str text):
    from dataproxy.errors import InvalidMessageError
    return InvalidMessageError(text)


cdef int _check(int status, const Container* c) except -100:
    if status == ST_NO_MEMORY:
        raise MemoryError
    if status < 0:
        raise _broken(c.reason)
    return status


cdef str _read_text(Slice text, bint modified):
    # Versions 0 to 3 hold modified UTF-8 as Java writes it: NUL as C0 80, large characters as two surrogates.
    cdef bytes raw = text.p[:text.n] if text.n else b""
    if raw.isascii():
        return raw.decode("ascii")
    if not modified:
        return raw.decode("utf-8", "replace")
    if max(raw) >= 0xF0:
        raise _broken(b"an attribute text is not modified UTF-8")
    try:
        loose = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return loose.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise _broken(b"an attribute text is not modified UTF-8") from None


cdef dict _split(str text):
    cdef dict out = {}
    if not text.strip(BLANKS):
        return out
    for entry in text.split("&"):
        key, mark, value = entry.strip(BLANKS).partition("=")
        if not mark or "=" in value:
            raise _broken(b"an attribute is not of the form key=value")
        if key in out:
            raise _broken(b"an attribute key occurs twice")
        out[key] = value
    return out


cdef dict _common(const Container* c):
    cdef dict out = _split(_read_text(c.attrs, c.version != 4))
    if c.version == 4:
        out["dt"] = str(c.create_ms)
        out["cnt"] = str(c.count)
        if not c.ext & EXT_NAMES:
            out["groupId"] = str(<short>c.group_num)
            out["streamId"] = str(<short>c.stream_num)
    return out


cdef list _read_groups(bytes data, size_t limit, Container* c):
    cdef Buf scratch
    cdef Slice body
    cdef Slice own
    cdef list out = []
    cdef list bodies
    cdef dict common
    cdef dict known
    buf_init(&scratch)
    try:
        _check(container_open(c, <const unsigned char*><const char*>data, <size_t>len(data), limit, &scratch), c)
        while _check(container_group(c), c) != ST_EOF:
            common = _common(c)
            known = {}
            bodies = None
            while _check(container_record(c, &body, &own), c) != ST_EOF:
                if own.p == NULL and bodies is not None:
                    bodies.append(body.p[:body.n])
                    continue
                attrs = common if own.p == NULL else _own_attrs(own, common)
                bodies = _group_of(out, attrs, known, own.p == NULL)
                bodies.append(body.p[:body.n])
    finally:
        buf_free(&scratch)
    return out


cdef class Records:
    """Yield (body, attributes) of each record of a container, decoded one at a time; made by ``records``.

    What is held besides the container is one payload unpacked, and the attributes of the record at hand: a container
    of few bytes may hold many records whose attributes are long.  Records with equal attributes that follow each other
    share one dictionary.  One thread at a time.
    """

    cdef bytes _data            # the container's bytes are borrowed from it
    cdef Container _c
    cdef Buf _scratch
    cdef bint _in_group
    cdef bint _ended
    cdef size_t _skip
    cdef dict _common
    cdef bytes _own             # text of the last record's own attributes ...
    cdef dict _attrs            # ... and these with the common ones

    def __cinit__(self, bytes data not None, *, size_t skip=0, size_t limit=MAX_UNPACKED):
        """Read the head; ``skip`` records will be passed over.  Raises RemoteProtocolError."""
        buf_init(&self._scratch)
        self._data = data
        self._in_group = self._ended = False
        self._skip = skip
        _check(container_open(&self._c, <const unsigned char*><const char*>data, <size_t>len(data), limit,
                              &self._scratch), &self._c)

    def __dealloc__(self):
        """Release what was unpacked."""
        buf_free(&self._scratch)

    def __iter__(self):
        """Return itself."""
        return self

    def __next__(self):
        """Return the next record.  Raises RemoteProtocolError where the container is damaged, and then no more."""
        cdef Slice body
        cdef Slice own
        if self._ended:
            raise StopIteration
        self._ended = True      # unless a record is found
        while not self._in_group or _check(self._record(&body, &own), &self._c) == ST_EOF:
            if _check(container_group(&self._c), &self._c) == ST_EOF:
                buf_free(&self._scratch)
                raise StopIteration
            self._in_group = True
            self._own = None
            self._common = _common(&self._c)
        attrs = self._common if own.p == NULL else self._owned(own)
        self._ended = False
        return body.p[:body.n], attrs

    @property
    def create_time_ms(self):
        """Return when the container was made, to the second in version 4; 0 in version 0, which does not say it."""
        return max(self._c.create_ms, 0)

    cdef int _record(self, Slice* body, Slice* own) noexcept nogil:
        cdef int status = container_record(&self._c, body, own)
        while status == ST_OK and self._skip:
            self._skip -= 1
            status = container_record(&self._c, body, own)
        return status

    cdef dict _owned(self, Slice own):
        cdef bytes raw = own.p[:own.n]
        if raw != self._own:
            self._attrs = _own_attrs(own, self._common)
            self._own = raw
        return self._attrs


cdef class Runs:
    """Append bodies to a column and yield (attributes, records), one run of records with equal attributes at a time.

    Made by ``runs``.  What is held besides container and column is one payload unpacked and the attributes at hand.
    One thread at a time.
    """

    cdef bytes _data            # the container's bytes are borrowed from it
    cdef Bytes _bodies
    cdef Container _c
    cdef Buf _scratch
    cdef Slice _body            # of the record that begins the next run
    cdef Slice _own
    cdef bint _in_group         # there is one
    cdef bint _ended
    cdef dict _common

    def __cinit__(self, bytes data not None, Bytes bodies not None, *, size_t limit=MAX_UNPACKED):
        """Read the head.  Raises RemoteProtocolError."""
        buf_init(&self._scratch)
        self._data = data
        self._bodies = bodies
        self._in_group = self._ended = False
        _check(container_open(&self._c, <const unsigned char*><const char*>data, <size_t>len(data), limit,
                              &self._scratch), &self._c)

    def __dealloc__(self):
        """Release what was unpacked."""
        buf_free(&self._scratch)

    def __iter__(self):
        """Return itself."""
        return self

    def __next__(self):
        """Return the next run.  Raises RemoteProtocolError where the container is damaged, and OverflowError."""
        cdef size_t before
        cdef int status
        if self._ended:
            raise StopIteration
        self._ended = True      # unless a run is found
        while not self._in_group:
            with nogil:
                status = container_group(&self._c)
            if _check(status, &self._c) == ST_EOF:
                buf_free(&self._scratch)
                raise StopIteration
            self._common = _common(&self._c)
            self._in_group = _check(container_record(&self._c, &self._body, &self._own), &self._c) == ST_OK
        attrs = self._common if self._own.p == NULL else _own_attrs(self._own, self._common)
        before = self._bodies.count()
        with nogil:
            status = self._take()
        if status == ST_LIMIT:
            raise OverflowError("bodies of more than 2 GiB in one column")
        self._in_group = _check(status, &self._c) == ST_OK
        self._ended = False
        return attrs, self._bodies.count() - before

    cdef int _take(self) noexcept nogil:
        # All bodies up to a record with other attributes, which is kept for the next run.
        cdef Slice own = self._own
        cdef int status = ST_OK
        while status == ST_OK:
            status = self._bodies.put(self._body.p, self._body.n)
            if status == ST_OK:
                status = container_record(&self._c, &self._body, &self._own)
            if status == ST_OK and not _is_same(own, self._own):
                break
        return status


cdef bint _is_same(Slice a, Slice b) noexcept nogil:
    if a.p == NULL or b.p == NULL:
        return a.p == b.p
    return a.n == b.n and memcmp(a.p, b.p, a.n) == 0


cdef list _group_of(list out, dict attrs, dict known, bint plain):
    if plain:
        group = Group(attrs, [])
        out.append(group)
        return group.records
    key = frozenset(attrs.items())
    group = known.get(key)
    if group is None:
        group = Group(attrs, [])
        known[key] = group
        out.append(group)
    return group.records


cdef dict _own_attrs(Slice own, dict common):
    # The common attributes win over a record's own, which are the client's bytes in every version: plain UTF-8.
    cdef dict attrs = _split(_read_text(own, False))
    if ESCAPED_KEYS in attrs:
        attrs = unescape_attrs(attrs)
    attrs.update(common)
    return attrs


def decode(bytes data, *, size_t limit=MAX_UNPACKED):
    """Return a container as a Message; any thread.

    limit: most bytes that one payload may unpack to.  Raises RemoteProtocolError for bytes that are no
    container of version 0 to 4, or a damaged one.
    """
    cdef Container c
    cdef list groups = _read_groups(data, limit, &c)
    return Message(c.version, c.create_ms, c.count, bool(c.packed), groups)


def records(bytes data, *, size_t skip=0, size_t limit=MAX_UNPACKED):
    """Return an iterator over the records of a container behind the first ``skip``, as (body, attributes); any thread.

    They are decoded as they are asked for: of a damaged container those before the damage are given first.  Records
    that follow each other with equal attributes share a dictionary.  Raises RemoteProtocolError as decode does.
    """
    return Records(data, skip=skip, limit=limit)


def runs(bytes data, Bytes bodies not None, *, size_t limit=MAX_UNPACKED):
    """Return an iterator that appends bodies to a column and yields (attributes, records), in order; any thread.

    Records in a row with the same attributes are one run, whose bodies are in the column when it is given.  Raises
    RemoteProtocolError as decode does, and OverflowError for a column of more than 2 GiB.
    """
    return Runs(data, bodies, limit=limit)


cdef bytes _attr_text(attrs):
    cdef list parts = []
    if isinstance(attrs, str):
        return attrs.encode()
    for key, value in attrs.items():
        for word in (key, value):
            if "&" in word or "=" in word:
                raise _refused(f"attribute {key!r}={value!r} contains '&' or '=', which attribute text cannot hold")
        parts.append(f"{key}={value}")
    return "&".join(parts).encode()


cdef int _put_chunk(Buf* out, bytes data) except -1:
    if buf_put_be32(out, <uint32_t>len(data)) != ST_OK or buf_put(out, <const char*>data, <size_t>len(data)) != ST_OK:
        raise MemoryError
    return 0


cdef int _put_pair(Buf* out, tuple pair) except -1:
    cdef bytes body = pair[0]
    cdef bytes text = _attr_text(pair[1])
    if not body or not text:
        raise _refused("a pair needs a body and an attribute text that are not empty")
    _put_chunk(out, body)
    _put_chunk(out, text)
    return 0


cdef int _put_group(Buf* out, Buf* payload, int version, attrs, items, bint compress) except -1:
    cdef GroupPlace place
    cdef bytes text = _attr_text(attrs)
    cdef int status
    payload.n = 0
    for item in items:
        if version == 3:
            if payload.n == 0 and buf_put_be32(payload, 0) != ST_OK:
                raise MemoryError
            _put_pair(payload, item)
        else:
            _put_chunk(payload, item)
    if version == 3 and payload.n > 0:
        store_be32(payload.p, <uint32_t>(payload.n - 4))
    status = open_group_text(out, &place)
    if status == ST_OK:
        status = put_text(out, slice_of(<const char*>text, <size_t>len(text)))
    if status == ST_OK:
        status = close_group_text(out, &place)
        if status == ST_LIMIT:
            raise _refused(f"attribute text of {len(text)} bytes; a container holds at most 65535")
    if status == ST_OK and version == 2:
        status = buf_put_be32(out, <uint32_t>len(items))
    if status == ST_OK:
        status = put_payload(out, slice_of(payload.p, payload.n), compress and payload.n > 0)
    if status != ST_OK:
        raise MemoryError
    return 0


cdef bytes _encode_frame(groups, int64_t create_time_ms, bint compress, uint32_t seq):
    cdef FrameSpec spec
    cdef Buf body
    cdef Buf packed
    cdef Buf* chosen = &body
    cdef bytes text
    cdef size_t start = 0
    cdef size_t size = 0
    cdef int status
    memset(&spec, 0, sizeof(FrameSpec))
    if len(groups) != 1:
        raise _refused(f"version 4 has one group, not {len(groups)}")
    attrs, items = groups[0]
    text = _attr_text(attrs)
    pairs = bool(items) and isinstance(items[0], tuple)
    spec.family = 7
    spec.items = ITEM_ATTRS if pairs else ITEM_LENGTH
    spec.compressed = compress
    spec.seq = seq
    spec.count = <uint32_t>len(items)
    spec.data_time_ms = create_time_ms
    spec.attrs = slice_of(<const char*>text, <size_t>len(text))
    spec.id = slice_of(NULL, 0)
    spec.apart = 0
    buf_init(&body)
    buf_init(&packed)
    try:
        if buf_reserve(&body, FRAME_HEAD_ROOM) != ST_OK or buf_reserve(&packed, FRAME_HEAD_ROOM) != ST_OK:
            raise MemoryError
        body.n = packed.n = FRAME_HEAD_ROOM
        for item in items:
            if pairs:
                _put_pair(&body, item)
            else:
                _put_chunk(&body, item)
        if compress:
            chosen = &packed
            if pack_block(body.p + FRAME_HEAD_ROOM, body.n - FRAME_HEAD_ROOM, &packed) != ST_OK:
                raise MemoryError
        if buf_reserve(chosen, frame_tail_room(&spec)) != ST_OK:
            raise MemoryError
        status = frame_around(&spec, chosen.p, chosen.n - FRAME_HEAD_ROOM, &start, &size)
        if status != ST_OK:
            raise _refused("version 4 needs 1 to 65535 records, ASCII attributes of 1 to 32000 bytes, a time from 0 on")
        return b"\x0f\x04" + chosen.p[start:start + size] + b"\x0f\x04"
    finally:
        buf_free(&body)
        buf_free(&packed)


def encode(int version, groups, *, int64_t create_time_ms=0, bint compress=False, uint32_t seq=0):
    """Return a container of version 0 to 4; any thread.

    groups: (attributes, records) pairs, one in version 4; attributes are a mapping or a finished text.  A record
    is bytes, in version 3 always and in version 4 optionally a tuple (bytes, own attributes).  create_time_ms is
    kept to the second by version 4 and not at all by version 0; seq is version 4's correlation number.
    Raises InvalidMessageError for what the version cannot hold.
    """
    cdef Buf out
    cdef Buf payload
    cdef int status
    if not 0 <= version <= 4:
        raise _refused(f"container version {version!r} is unknown; use 0 to 4")
    groups = list(groups)
    if version == 4:
        return _encode_frame(groups, create_time_ms, compress, seq)
    buf_init(&out)
    buf_init(&payload)
    try:
        count = sum([len(group[1]) for group in groups])
        status = put_container_head(&out, version, create_time_ms, <uint32_t>count, <uint32_t>len(groups))
        if status != ST_OK:
            raise MemoryError
        for attrs, items in groups:
            _put_group(&out, &payload, version, attrs, items, compress)
        if put_container_magic(&out, version) != ST_OK:
            raise MemoryError
        return out.p[:out.n]
    finally:
        buf_free(&out)
        buf_free(&payload)
