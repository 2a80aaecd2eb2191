"""Messages of a producer, checked and written as they travel.

Locality: GIL, any thread.  Locks: none.
"""

cimport cython
import zlib
from collections.abc import Mapping
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.plat.pytype cimport ascii_bytes, new_ascii

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import body_type, buffer_problem, shown

__all__ = ["DELAY_LEVELS", "Encoded", "Ids", "check_size", "encode", "encode_batch"]

cdef enum:
    BODY_MOST = 4194304         # bytes of a message, as brokers have it by default
    PROPERTIES_MOST = 32767
    COMPRESSED = 0x301          # by zlib
    LEVEL = 5
    NUMBER_DIGITS = 12

#: Delays in seconds by their levels, which begin with 1; a broker may be configured otherwise.
DELAY_LEVELS = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)

RESERVED = frozenset((
    "KEYS", "TAGS", "WAIT", "DELAY", "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP", "MIN_OFFSET",
    "MAX_OFFSET", "UNIQ_KEY", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME", "MAX_RECONSUME_TIMES", "BUYER_ID", "MSG_REGION",
    "TRACE_ON", "CLUSTER", "INSTANCE_ID", "CONSUME_START_TIME", "TRANSACTION_CHECK_TIMES",
    "TRANSACTION_PREPARED_QUEUE_OFFSET", "CHECK_IMMUNITY_TIME_IN_SECONDS", "__transactionId__",
))


@cython.final
@cython.auto_pickle(False)
cdef class Ids:
    """Ids of messages: ``head``, and 12 hex digits of numbers that rise from ``first`` on.  Any thread."""

    def __cinit__(self, str head not None, uint64_t first):
        self.head, self.next = head.encode("ascii"), first

    def __iter__(self):
        return self

    def __next__(self):
        cdef const char* digits = b"0123456789ABCDEF"
        cdef Py_ssize_t n = len(self.head)
        cdef uint64_t number = self.next
        cdef str text = new_ascii(n + NUMBER_DIGITS, 127)
        cdef uint8_t* to = <uint8_t*>ascii_bytes(text)
        cdef int i
        self.next = number + 1
        memcpy(to, <const char*>self.head, <size_t>n)
        for i in range(NUMBER_DIGITS):
            to[n + NUMBER_DIGITS - 1 - i] = digits[number >> 4 * i & 15]
        return text


@cython.final
@cython.auto_pickle(False)
@cython.freelist(64)
cdef class Encoded:
    """A message as it travels, or a batch."""


def encode_batch(str id_ not None, bytes body not None):
    """Return a batch: the id of its first message, and all of them as one body."""
    return _encoded(id_, body, b"WAIT\x01true", 0, 0)


cdef Encoded _encoded(str id_, bytes body, bytes properties, int flag, int sys_flag):
    cdef Encoded found = Encoded.__new__(Encoded)
    found.id, found.body, found.properties, found.flag, found.sys_flag = id_, body, properties, flag, sys_flag
    return found


def encode(str id_ not None, body, tag, keys, properties, delay_level, flag, Py_ssize_t compress_above, more=None):
    """Check a message and write it.  ``more``: properties of the protocol.  Raises InvalidMessageError."""
    cdef int sys_flag = 0
    if type(body) is not bytes:
        body = _bytes_of(body)
    if not body:
        raise InvalidMessageError("the body is empty", code="EMPTY_BODY", hint="brokers take no message without a body")
    check_size("a body", len(body), "split it")
    if type(flag) is not int or not -0x80000000 <= flag < 0x80000000:
        raise InvalidMessageError(f"flag {shown(flag)} is no number of 32 bits")
    if 0 < compress_above <= len(body):
        packed = zlib.compress(body, LEVEL)
        if len(packed) < len(body):
            body, sys_flag = packed, COMPRESSED
    return _encoded(id_, body, _properties(id_, tag, keys, properties, delay_level, more), flag, sys_flag)


def check_size(str what not None, Py_ssize_t size, str hint not None):
    """Raise InvalidMessageError for something with more bytes than brokers take."""
    if size > BODY_MOST:
        raise InvalidMessageError(
            f"{what} has {size} bytes; brokers take up to {BODY_MOST}", code="BODY_TOO_LARGE", hint=hint,
            details={"size": size, "limit": BODY_MOST})


cdef bytes _bytes_of(object body):
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise body_type(body)
    try:
        view = memoryview(body)     # not bytes(body), which asks a subclass for something else
        check_size("a body", view.nbytes, "split it")   # before it is copied
        return bytes(view)
    except ValueError as error:     # the view was released
        raise buffer_problem(f"{type(body).__name__!r} has no buffer of bytes: {error}") from None


cdef bytes _properties(str id_, object tag, object keys, object properties, object delay_level, object more):
    cdef list parts = ["UNIQ_KEY\x01", id_, "\x02WAIT\x01true"]
    if _is_given(tag):
        _check("tag", tag)
        if "||" in tag or tag.strip() != tag:
            raise InvalidMessageError(f"tag {shown(tag)} has blanks around it, or '||', which divides tags")
        parts += ("\x02TAGS\x01", tag)
    if _is_given(keys):
        parts += ("\x02KEYS\x01", _keys(keys))
    if _is_given(delay_level):
        if type(delay_level) is not int or not 0 < delay_level <= len(DELAY_LEVELS):
            raise InvalidMessageError(f"delay_level {shown(delay_level)} is not 0 to {len(DELAY_LEVELS)}")
        parts.append(f"\x02DELAY\x01{delay_level}")
    if type(properties) is not dict or properties:
        _put_properties(parts, properties)
    if more is not None:
        for name, value in more.items():
            parts.append(f"\x02{name}\x01{value}")
    try:
        found = "".join(parts).encode()
    except UnicodeEncodeError:
        raise InvalidMessageError("a property holds half of a surrogate pair", hint="give valid text") from None
    if len(found) > PROPERTIES_MOST:
        raise InvalidMessageError(
            f"the properties take {len(found)} bytes, allowed are {PROPERTIES_MOST}",
            hint="put large values into the body")
    return found


cdef bint _is_given(value):
    """Return whether there is something that is to be looked at; an array knows no answer."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        return True


cdef int _put_properties(list parts, object properties) except -1:
    if not isinstance(properties, Mapping):
        raise InvalidMessageError(f"properties {shown(properties)} is no mapping", hint="give a dict of texts")
    for name, value in properties.items():
        _check("property", name)
        _check("property", value, name)
        if name in RESERVED:
            raise InvalidMessageError(f"property {shown(name)} belongs to the protocol", hint="choose another name")
        parts += ("\x02", name, "\x01", value)
    return 0


cdef str _keys(object keys):
    if not isinstance(keys, (tuple, list)):
        raise InvalidMessageError(f"keys {shown(keys)} is not a tuple", hint="give a tuple of texts")
    for key in keys:
        _check("key", key)
        if " " in key:
            raise InvalidMessageError(f"key {shown(key)} has a blank, which divides keys")
    return " ".join(keys)


cdef int _check(str what, object text, object of=None) except -1:
    """Raise InvalidMessageError for what cannot be part of properties; ``of``: the property whose value it is."""
    if isinstance(text, str) and text and "\x01" not in text and "\x02" not in text:
        return 0
    if of is not None:
        what = f"{what} {shown(of)}"
    if not isinstance(text, str) or not text:
        raise InvalidMessageError(f"{what} {shown(text)} is not a text with at least one character")
    raise InvalidMessageError(f"{what} {shown(text)} holds \\x01 or \\x02, which divide properties")
