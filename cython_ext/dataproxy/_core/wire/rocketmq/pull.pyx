"""PULL (11), and its answer, in both roles.

Locality: owner of the command.  Locks: none.
"""

from libc.stdint cimport int32_t

from dataproxy._core.base.buf cimport Buf, buf_put_slice
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_OK
from dataproxy._core.wire.rocketmq.const cimport (
    ANSWER_PULL_NOT_FOUND, ANSWER_PULL_OFFSET_MOVED, ANSWER_SUCCESS,
)
from dataproxy._core.wire.rocketmq.header cimport Command, CommandFields, fields_begin, fields_step
from dataproxy._core.wire.rocketmq.values cimport read_int, read_long
from dataproxy._core.wire.rocketmq.write cimport (
    CommandWriter, write_begin, write_end, write_header, write_number, write_text,
)

cdef enum:                      # fields that have to be there
    PULL_GROUP = 0
    PULL_TOPIC
    PULL_QUEUE
    PULL_OFFSET
    PULL_MOST
    PULL_SYS_FLAG
    PULL_COMMIT_OFFSET
    PULL_SUSPEND_MS
    PULL_SUB_VERSION
    PULL_REQUIRED

cdef const char* NAMES[PULL_REQUIRED]
NAMES[PULL_GROUP] = b"consumerGroup"
NAMES[PULL_TOPIC] = b"topic"
NAMES[PULL_QUEUE] = b"queueId"
NAMES[PULL_OFFSET] = b"queueOffset"
NAMES[PULL_MOST] = b"maxMsgNums"
NAMES[PULL_SYS_FLAG] = b"sysFlag"
NAMES[PULL_COMMIT_OFFSET] = b"commitOffset"
NAMES[PULL_SUSPEND_MS] = b"suspendTimeoutMillis"
NAMES[PULL_SUB_VERSION] = b"subVersion"


cdef bint _take(PullRequest* p, int field, Slice value) noexcept nogil:
    """Take a field that has to be there; False: it is empty, or no number."""
    if field == PULL_GROUP:
        p.group = value
    elif field == PULL_TOPIC:
        p.topic = value
    elif field == PULL_QUEUE:
        return read_int(value, &p.queue)
    elif field == PULL_OFFSET:
        return read_long(value, &p.offset)
    elif field == PULL_MOST:
        return read_int(value, &p.most)
    elif field == PULL_SYS_FLAG:
        return read_int(value, &p.sys_flag)
    elif field == PULL_COMMIT_OFFSET:
        return read_long(value, &p.commit_offset)
    elif field == PULL_SUSPEND_MS:
        return read_long(value, &p.suspend_ms)
    else:
        return read_long(value, &p.sub_version)
    return value.n > 0


cdef int _field_of(Slice name) noexcept nogil:
    cdef int field = 0
    while field < PULL_REQUIRED and not slice_is(name, NAMES[field]):
        field += 1
    return field


cdef int read_pull(Command* command, PullRequest* out) noexcept nogil:
    """Read a request; ST_OK, or ST_INVALID with ``wrong``: the first field that is missing or no number."""
    cdef CommandFields fields
    cdef Slice name, value, none = slice_of(NULL, 0)
    cdef int field, good = 0
    out.group = out.topic = out.subscription = out.expression_type = out.broker = none
    out.queue = out.most = out.sys_flag = 0
    out.offset = out.commit_offset = out.suspend_ms = out.sub_version = 0
    out.wrong = NULL
    fields_begin(&fields, command)
    while fields_step(&fields, &name, &value):
        field = _field_of(name)
        if field < PULL_REQUIRED:
            good = good | 1 << field if _take(out, field, value) else good & ~(1 << field)
        elif slice_is(name, b"subscription"):
            out.subscription = value
        elif slice_is(name, b"expressionType"):
            out.expression_type = value
        elif slice_is(name, b"bname"):
            out.broker = value
    for field in range(PULL_REQUIRED):
        if not good >> field & 1:
            out.wrong = NAMES[field]
            return ST_INVALID
    return ST_OK


cdef int put_pull(Buf* out, const Command* command, const PullRequest* p) noexcept nogil:
    """Write a request; ST_OK, ST_NO_MEMORY, ST_INVALID or ST_LIMIT."""
    cdef CommandWriter w
    write_begin(&w, out, command)
    write_text(&w, NAMES[PULL_GROUP], p.group)
    write_text(&w, NAMES[PULL_TOPIC], p.topic)
    write_number(&w, NAMES[PULL_QUEUE], p.queue)
    write_number(&w, NAMES[PULL_OFFSET], p.offset)
    write_number(&w, NAMES[PULL_MOST], p.most)
    write_number(&w, NAMES[PULL_SYS_FLAG], p.sys_flag)
    write_number(&w, NAMES[PULL_COMMIT_OFFSET], p.commit_offset)
    write_number(&w, NAMES[PULL_SUSPEND_MS], p.suspend_ms)
    if p.subscription.n:
        write_text(&w, b"subscription", p.subscription)
    write_number(&w, NAMES[PULL_SUB_VERSION], p.sub_version)
    if p.expression_type.n:
        write_text(&w, b"expressionType", p.expression_type)
    if p.broker.n:
        write_text(&w, b"bname", p.broker)
    write_header(&w)
    return write_end(&w)


cdef bint _has_offsets(int32_t code) noexcept nogil:
    return code == ANSWER_SUCCESS or ANSWER_PULL_NOT_FOUND <= code <= ANSWER_PULL_OFFSET_MOVED


cdef int read_pulled(Command* command, Pulled* out) noexcept nogil:
    """Read an answer; ST_OK, or ST_INVALID with ``wrong``."""
    cdef CommandFields fields
    cdef Slice name, value
    cdef bint broker = False, next_ = False, least = False, most = False
    out.code = command.code
    out.offsets = _has_offsets(command.code)
    out.remark = command.remark
    out.messages = command.body if command.code == ANSWER_SUCCESS else slice_of(NULL, 0)
    out.next_broker = 0
    out.next_offset = out.min_offset = out.max_offset = -1
    out.wrong = NULL
    fields_begin(&fields, command)
    while fields_step(&fields, &name, &value):
        if slice_is(name, b"suggestWhichBrokerId"):
            broker = read_long(value, &out.next_broker)
        elif slice_is(name, b"nextBeginOffset"):
            next_ = read_long(value, &out.next_offset)
        elif slice_is(name, b"minOffset"):
            least = read_long(value, &out.min_offset)
        elif slice_is(name, b"maxOffset"):
            most = read_long(value, &out.max_offset)
    if not out.offsets:
        return ST_OK
    if not broker:
        out.wrong = b"suggestWhichBrokerId"
    elif not next_:
        out.wrong = b"nextBeginOffset"
    elif not least:
        out.wrong = b"minOffset"
    elif not most:
        out.wrong = b"maxOffset"
    return ST_OK if out.wrong == NULL else ST_INVALID


cdef int put_pulled(Buf* out, const Command* command, const Pulled* p) noexcept nogil:
    """Write an answer; ST_OK, ST_NO_MEMORY, ST_INVALID or ST_LIMIT."""
    cdef CommandWriter w
    cdef Command head = command[0]
    head.code, head.remark, head.extended = p.code, p.remark, True
    write_begin(&w, out, &head)
    if _has_offsets(p.code):
        write_number(&w, b"suggestWhichBrokerId", p.next_broker)
        write_number(&w, b"nextBeginOffset", p.next_offset)
        write_number(&w, b"minOffset", p.min_offset)
        write_number(&w, b"maxOffset", p.max_offset)
    write_header(&w)
    if p.code == ANSWER_SUCCESS and w.status == ST_OK:
        w.status = buf_put_slice(out, p.messages)
    return write_end(&w)
