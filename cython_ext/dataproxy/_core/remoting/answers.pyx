"""What came on a link, as objects.

Locality: GIL, the thread that reads the link.  Locks: none.
"""

cimport cython

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.remoting.messages cimport messages_of
from dataproxy._core.wire.rocketmq.const cimport FLAG_ONE_WAY
from dataproxy._core.wire.rocketmq.header cimport CommandFields, fields_begin, fields_step
from dataproxy._core.wire.rocketmq.pull cimport Pulled, read_pulled
from dataproxy._core.wire.rocketmq.send cimport Sent, read_sent

from dataproxy.errors import RemoteProtocolError

__all__ = ["Answer", "Incoming", "PullAnswer", "SendAnswer"]


cdef str _text(Slice s):
    return (<const char*>s.p)[:s.n].decode("utf-8", "replace") if s.n else ""


cdef bytes _taken(Slice s):
    return (<const char*>s.p)[:s.n] if s.n else b""


cdef dict _fields_of(Command* command):
    cdef CommandFields fields
    cdef Slice name, value
    cdef dict found = {}
    fields_begin(&fields, command)
    while fields_step(&fields, &name, &value):
        found[_text(name)] = _text(value)
    return found


cdef object _wrong(const char* field):
    name = (<bytes>field).decode("ascii")
    text = f"the field {name!r} of a broker's answer is missing, or no number"
    return RemoteProtocolError(text, details={"field": name})


@cython.final
@cython.auto_pickle(False)
cdef class Answer:
    """An answer: its code, its text, its fields, its body."""


@cython.final
@cython.auto_pickle(False)
cdef class Incoming:
    """A request of the server."""


@cython.final
@cython.auto_pickle(False)
@cython.freelist(64)
cdef class SendAnswer:
    """An answer to a send."""


@cython.final
@cython.auto_pickle(False)
cdef class PullAnswer:
    """An answer to a pull."""


cdef Answer answer_of(Command* command):
    """Return an answer of any kind."""
    cdef Answer found = Answer.__new__(Answer)
    found.code, found.remark, found.fields = command.code, _text(command.remark), _fields_of(command)
    found.body = _taken(command.body)
    return found


cdef Incoming incoming_of(Command* command):
    """Return a request."""
    cdef Incoming found = Incoming.__new__(Incoming)
    found.code, found.opaque, found.form = command.code, command.opaque, command.form
    found.one_way = command.flag & FLAG_ONE_WAY != 0
    found.fields, found.body = _fields_of(command), _taken(command.body)
    return found


cdef SendAnswer send_answer_of(Command* command):
    """Return an answer to a send.  Raises RemoteProtocolError."""
    cdef SendAnswer found = SendAnswer.__new__(SendAnswer)
    cdef Sent sent
    if read_sent(command, &sent) != ST_OK:
        raise _wrong(sent.wrong)
    found.code, found.stored, found.queue, found.offset = sent.code, sent.stored, sent.queue, sent.offset
    found.remark, found.ids = _text(sent.remark), _text(sent.ids)
    found.transaction = _text(sent.transaction)
    return found


cdef PullAnswer pull_answer_of(Command* command, str broker):
    """Return an answer to a pull.  Raises RemoteProtocolError."""
    cdef PullAnswer found = PullAnswer.__new__(PullAnswer)
    cdef Pulled pulled
    if read_pulled(command, &pulled) != ST_OK:
        raise _wrong(pulled.wrong)
    found.code, found.remark, found.placed = pulled.code, _text(pulled.remark), pulled.offsets
    found.next_offset, found.min_offset, found.max_offset = pulled.next_offset, pulled.min_offset, pulled.max_offset
    found.messages = messages_of(pulled.messages, broker, &found.broken)
    return found
