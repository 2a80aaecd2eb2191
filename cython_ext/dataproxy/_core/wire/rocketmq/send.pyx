"""SEND in its three forms (10, 310, 320), and its answer, in both roles.

310 and 320 name their fields by one letter each, 10 by words.

Locality: owner of the command.  Locks: none.
"""

from libc.stdint cimport int32_t

from dataproxy._core.base.buf cimport Buf, buf_put_slice
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_is, slice_of, slice_text
from dataproxy._core.base.status cimport ST_INVALID, ST_OK
from dataproxy._core.wire.rocketmq.const cimport (
    ANSWER_FLUSH_DISK_TIMEOUT, ANSWER_FLUSH_SLAVE_TIMEOUT, ANSWER_SUCCESS, CODE_SEND,
)
from dataproxy._core.wire.rocketmq.header cimport Command, CommandFields, fields_begin, fields_step
from dataproxy._core.wire.rocketmq.values cimport read_bool, read_int, read_long
from dataproxy._core.wire.rocketmq.write cimport (
    CommandWriter, write_begin, write_bool, write_end, write_header, write_number, write_text,
)

cdef enum:                      # fields, by their letters in 310 and 320
    FIELD_GROUP = 0
    FIELD_TOPIC
    FIELD_DEFAULT_TOPIC
    FIELD_DEFAULT_QUEUES
    FIELD_QUEUE
    FIELD_SYS_FLAG
    FIELD_BORN
    FIELD_FLAG
    FIELD_PROPERTIES
    FIELD_RECONSUME
    FIELD_UNIT
    FIELD_MAX_RECONSUME
    FIELD_BATCH
    FIELD_BROKER
    FIELDS

cdef const char* WORDS[FIELDS]
cdef const char* LETTERS[FIELDS]
cdef Slice WORD_SLICES[FIELDS]
cdef int each
WORDS[FIELD_GROUP], LETTERS[FIELD_GROUP] = b"producerGroup", b"a"
WORDS[FIELD_TOPIC], LETTERS[FIELD_TOPIC] = b"topic", b"b"
WORDS[FIELD_DEFAULT_TOPIC], LETTERS[FIELD_DEFAULT_TOPIC] = b"defaultTopic", b"c"
WORDS[FIELD_DEFAULT_QUEUES], LETTERS[FIELD_DEFAULT_QUEUES] = b"defaultTopicQueueNums", b"d"
WORDS[FIELD_QUEUE], LETTERS[FIELD_QUEUE] = b"queueId", b"e"
WORDS[FIELD_SYS_FLAG], LETTERS[FIELD_SYS_FLAG] = b"sysFlag", b"f"
WORDS[FIELD_BORN], LETTERS[FIELD_BORN] = b"bornTimestamp", b"g"
WORDS[FIELD_FLAG], LETTERS[FIELD_FLAG] = b"flag", b"h"
WORDS[FIELD_PROPERTIES], LETTERS[FIELD_PROPERTIES] = b"properties", b"i"
WORDS[FIELD_RECONSUME], LETTERS[FIELD_RECONSUME] = b"reconsumeTimes", b"j"
WORDS[FIELD_UNIT], LETTERS[FIELD_UNIT] = b"unitMode", b"k"
WORDS[FIELD_MAX_RECONSUME], LETTERS[FIELD_MAX_RECONSUME] = b"maxReconsumeTimes", b"l"
WORDS[FIELD_BATCH], LETTERS[FIELD_BATCH] = b"batch", b"m"
WORDS[FIELD_BROKER], LETTERS[FIELD_BROKER] = b"bname", b"n"

for each in range(FIELDS):
    WORD_SLICES[each] = slice_text(WORDS[each])


cdef int _field_of(int32_t code, Slice name) noexcept nogil:
    """Return the SendField that a name means, or FIELDS."""
    cdef int i
    if code != CODE_SEND:
        return name.p[0] - 97 if name.n == 1 and 97 <= name.p[0] < 97 + FIELDS else FIELDS
    for i in range(FIELDS):
        if slice_equals(name, WORD_SLICES[i]):
            return i
    return FIELDS


cdef bint _take(SendRequest* s, int field, Slice value) noexcept nogil:
    """Take a field; False: it is no number, or empty."""
    if field == FIELD_GROUP:
        s.producer_group = value
    elif field == FIELD_TOPIC:
        s.topic = value
    elif field == FIELD_DEFAULT_TOPIC:
        s.default_topic = value
    elif field == FIELD_DEFAULT_QUEUES:
        return read_int(value, &s.default_queues)
    elif field == FIELD_QUEUE:
        return read_int(value, &s.queue)
    elif field == FIELD_SYS_FLAG:
        return read_int(value, &s.sys_flag)
    elif field == FIELD_BORN:
        return read_long(value, &s.born_ms)
    elif field == FIELD_FLAG:
        return read_int(value, &s.flag)
    elif field == FIELD_PROPERTIES:
        s.properties = value
    elif field == FIELD_RECONSUME:
        return value.n == 0 or read_int(value, &s.reconsume_times)
    elif field == FIELD_UNIT:
        s.unit = read_bool(value)
    elif field == FIELD_MAX_RECONSUME:
        return value.n == 0 or read_int(value, &s.max_reconsume)
    elif field == FIELD_BATCH:
        s.batch = read_bool(value)
    elif field == FIELD_BROKER:
        s.broker = value
    return field > FIELD_DEFAULT_TOPIC or value.n > 0


cdef int read_send(Command* command, SendRequest* out) noexcept nogil:
    """Read a request with code 10, 310 or 320; ST_OK, or ST_INVALID with ``wrong``: the first field that is."""
    cdef CommandFields fields
    cdef Slice name, value, none = slice_of(NULL, 0)
    cdef int field, good = 0
    out.producer_group = out.topic = out.default_topic = out.properties = out.broker = none
    out.default_queues = out.queue = out.sys_flag = out.flag = out.reconsume_times = 0
    out.max_reconsume = -1
    out.born_ms = 0
    out.unit = out.batch = False
    out.body = command.body
    out.wrong = NULL
    # A field that may be missing has its bit from the start.
    good = (1 << FIELDS) - (1 << FIELD_PROPERTIES)
    fields_begin(&fields, command)
    while fields_step(&fields, &name, &value):
        field = _field_of(command.code, name)
        if field == FIELDS:
            continue
        if _take(out, field, value):
            good |= 1 << field
        else:
            good &= ~(1 << field)
    for field in range(FIELDS):
        if not good >> field & 1:
            out.wrong = WORDS[field]
            return ST_INVALID
    return ST_OK


cdef int put_send(Buf* out, const Command* command, const SendRequest* s) noexcept nogil:
    """Write a request with code 10, 310 or 320; ST_OK, ST_NO_MEMORY, ST_INVALID or ST_LIMIT."""
    cdef CommandWriter w
    cdef const char** names = &WORDS[0] if command.code == CODE_SEND else &LETTERS[0]
    write_begin(&w, out, command)
    write_text(&w, names[FIELD_GROUP], s.producer_group)
    write_text(&w, names[FIELD_TOPIC], s.topic)
    write_text(&w, names[FIELD_DEFAULT_TOPIC], s.default_topic)
    write_number(&w, names[FIELD_DEFAULT_QUEUES], s.default_queues)
    write_number(&w, names[FIELD_QUEUE], s.queue)
    write_number(&w, names[FIELD_SYS_FLAG], s.sys_flag)
    write_number(&w, names[FIELD_BORN], s.born_ms)
    write_number(&w, names[FIELD_FLAG], s.flag)
    write_text(&w, names[FIELD_PROPERTIES], s.properties)
    write_number(&w, names[FIELD_RECONSUME], s.reconsume_times)
    write_bool(&w, names[FIELD_UNIT], s.unit)
    if s.max_reconsume >= 0:
        write_number(&w, names[FIELD_MAX_RECONSUME], s.max_reconsume)
    write_bool(&w, names[FIELD_BATCH], s.batch)
    if s.broker.n:
        write_text(&w, names[FIELD_BROKER], s.broker)
    write_header(&w)
    if w.status == ST_OK:
        w.status = buf_put_slice(out, s.body)
    return write_end(&w)


cdef bint _is_stored(int32_t code) noexcept nogil:
    return code == ANSWER_SUCCESS or ANSWER_FLUSH_DISK_TIMEOUT <= code <= ANSWER_FLUSH_SLAVE_TIMEOUT


cdef int read_sent(Command* command, Sent* out) noexcept nogil:
    """Read an answer to any of the requests; ST_OK, or ST_INVALID with ``wrong``."""
    cdef CommandFields fields
    cdef Slice name, value, none = slice_of(NULL, 0)
    cdef bint queue = False, offset = False
    out.code = command.code
    out.stored = _is_stored(command.code)
    out.remark = command.remark
    out.ids = out.transaction = none
    out.queue = -1
    out.offset = -1
    out.wrong = NULL
    fields_begin(&fields, command)
    while fields_step(&fields, &name, &value):
        if slice_is(name, b"msgId"):
            out.ids = value
        elif slice_is(name, b"queueId"):
            queue = read_int(value, &out.queue)
        elif slice_is(name, b"queueOffset"):
            offset = read_long(value, &out.offset)
        elif slice_is(name, b"transactionId"):
            out.transaction = value
    if not out.stored:
        return ST_OK
    if out.ids.n == 0:
        out.wrong = b"msgId"
    elif not queue:
        out.wrong = b"queueId"
    elif not offset:
        out.wrong = b"queueOffset"
    return ST_OK if out.wrong == NULL else ST_INVALID


cdef int put_sent(Buf* out, const Command* command, const Sent* s) noexcept nogil:
    """Write an answer; ST_OK, ST_NO_MEMORY, ST_INVALID or ST_LIMIT.

    Its fields are there in any case, if only as {}: Java's client fails on an answer without them.
    """
    cdef CommandWriter w
    cdef Command head = command[0]
    head.code, head.remark, head.extended = s.code, s.remark, True
    write_begin(&w, out, &head)
    if _is_stored(s.code):
        write_text(&w, b"msgId", s.ids)
        write_number(&w, b"queueId", s.queue)
        write_number(&w, b"queueOffset", s.offset)
        if s.transaction.n:
            write_text(&w, b"transactionId", s.transaction)
    write_text(&w, b"MSG_REGION", slice_text(b"DefaultRegion"))
    write_bool(&w, b"TRACE_ON", True)
    write_header(&w)
    return write_end(&w)
