"""Messages that were pulled, as applications see them: each is taken apart where it is looked at.

Locality: GIL, any thread.  Locks: none.
"""

cimport cython
import zlib
from cpython.object cimport PyTypeObject

from dataproxy._core.base.made cimport BY_CORE, CORE_ARGS
from dataproxy._core.base.slice cimport Slice, slice_of, slice_text
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.plat.pytype cimport make
from dataproxy._core.wire.rocketmq.const cimport (
    COMPRESSION_LZ4, COMPRESSION_NONE, COMPRESSION_ZLIB, COMPRESSION_ZSTD,
)
from dataproxy._core.wire.rocketmq.properties cimport property_next, property_value
from dataproxy._core.wire.rocketmq.stored cimport (
    Host, StoredMessage, body_checksum, compression_of, put_message_id, read_stored,
)

from dataproxy.errors import RemoteProtocolError

__all__ = ["ReceivedMessage", "read_messages", "unpack_more", "unpacker_of"]

cdef enum:
    UNPACKED_MOST = 67108864    # bytes of a body that was compressed

cdef dict NAMES = {COMPRESSION_LZ4: "LZ4", COMPRESSION_ZSTD: "Zstandard"}
_RETRIES = "%RETRY%"


cdef bytes _taken(Slice s):
    return (<const char*>s.p)[:s.n] if s.n else b""


cdef str _text(Slice s):
    return (<const char*>s.p)[:s.n].decode("utf-8", "replace") if s.n else ""


cdef str _host_text(const Host* host):
    import ipaddress    # for people and logs alone
    address = ipaddress.ip_address((<const char*>host.address)[:host.n])
    return f"[{address}]:{host.port}" if host.n == 16 else f"{address}:{host.port}"


def unpacker_of(ReceivedMessage message not None):
    """Return the tool that unpacks a body, None for one that is not packed.

    Raises RemoteProtocolError: it is packed otherwise than by zlib.
    """
    cdef int how = compression_of(message.at.sys_flag)
    if how == COMPRESSION_NONE:
        return None
    if how == COMPRESSION_ZLIB:
        return zlib.decompressobj()
    raise RemoteProtocolError(
        f"the body of a message is compressed with {NAMES.get(how, 'an unknown method')}",
        retriable=False, hint="packed_body has its bytes as they came")


def unpack_more(object tool not None, bytes packed not None, Py_ssize_t size, Py_ssize_t most):
    """Return the next bytes of a body of which there are ``size`` by now, at most ``most``; ``packed`` is what is left.

    It is complete when ``tool.eof`` says so.  Raises RemoteProtocolError.
    """
    try:
        found = tool.decompress(packed, min(most, UNPACKED_MOST - size))
    except zlib.error as error:
        raise RemoteProtocolError(f"the body of a message is no zlib: {error}", retriable=False) from None
    if not tool.eof and size + len(found) >= UNPACKED_MOST:
        raise RemoteProtocolError(
            f"the compressed body of a message is larger than {UNPACKED_MOST} bytes", retriable=False)
    if not tool.eof and not found and not tool.unconsumed_tail:
        raise RemoteProtocolError("the compressed body of a message has no end", retriable=False)
    return found


cdef bytes _unpacked(object tool, bytes packed):
    """Return what zlib packed.  Raises RemoteProtocolError."""
    cdef list parts = []
    cdef Py_ssize_t size = 0
    while not tool.eof:
        parts.append(unpack_more(tool, packed, size, UNPACKED_MOST))
        size += len(parts[len(parts) - 1])
        packed = tool.unconsumed_tail
    return b"".join(parts)


@cython.final
@cython.auto_pickle(False)
@cython.freelist(64)
cdef class ReceivedMessage:
    """One message that a consumer got.  It keeps the answer that it came in, up to 256 KiB, alive.  Any thread."""

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("messages are made by a consumer")

    cdef object text_of(self, Slice name):
        """Return a property, None where there is none."""
        cdef Slice value
        return _text(value) if property_value(self.at.properties, name, &value) else None

    @property
    def topic(self) -> str:
        """Return the topic it was sent to, also of one that comes again."""
        cdef str topic = _text(self.at.topic)
        if topic.startswith(_RETRIES):
            return self.text_of(slice_text(b"RETRY_TOPIC")) or topic
        return topic

    @property
    def body(self) -> bytes:
        """Return the bytes, unpacked.  Raises RemoteProtocolError: they are packed otherwise than by zlib."""
        tool = unpacker_of(self)
        return _taken(self.at.body) if tool is None else _unpacked(tool, _taken(self.at.body))

    @property
    def packed_body(self) -> bytes:
        """Return the bytes as they came, compressed or not."""
        return _taken(self.at.body)

    @property
    def tag(self) -> str | None:
        """Return the tag, None without one."""
        return self.text_of(slice_text(b"TAGS"))

    @property
    def keys(self) -> tuple:
        """Return the keys by which it can be looked up."""
        return tuple((self.text_of(slice_text(b"KEYS")) or "").split())

    @property
    def properties(self) -> dict:
        """Return all properties, those of the protocol too."""
        cdef Slice rest = self.at.properties
        cdef Slice name, value
        cdef dict found = {}
        while property_next(&rest, &name, &value):
            found[_text(name)] = _text(value)
        return found

    @property
    def id(self) -> str:
        """Return the id that its producer gave it; without one, where it is stored."""
        return self.text_of(slice_text(b"UNIQ_KEY")) or self.offset_id

    @property
    def offset_id(self) -> str:
        """Return the id that says where it is stored."""
        cdef unsigned char text[56]
        cdef size_t n = put_message_id(text, &self.at.store, self.at.physical_offset) - text
        return (<const char*>text)[:n].decode("ascii")

    @property
    def transaction_id(self) -> str | None:
        """Return the id of the transaction it belongs to, None without one."""
        return self.text_of(slice_text(b"__transactionId__")) or self.text_of(slice_text(b"UNIQ_KEY"))

    @property
    def queue(self) -> int:
        """Return the number of its queue."""
        return self.at.queue

    @property
    def offset(self) -> int:
        """Return its offset in the queue."""
        return self.at.queue_offset

    @property
    def handle(self) -> int:
        """Return the broker's own number of it, which other calls name."""
        return self.at.physical_offset

    @property
    def flag(self) -> int:
        """Return the number that its producer gave it."""
        return self.at.flag

    @property
    def attempts(self) -> int:
        """Return how often it was tried before."""
        return self.at.reconsume_times

    def _tried(self):
        """Count an attempt that did not leave this process."""
        self.at.reconsume_times += 1

    @property
    def sys_flag(self) -> int:
        """Return the protocol's marks: whether the body is compressed, and how."""
        return self.at.sys_flag

    @property
    def born_ms(self) -> int:
        """Return when it was sent, in ms since 1970, by the producer's clock."""
        return self.at.born_ms

    @property
    def stored_ms(self) -> int:
        """Return when it was stored, in ms since 1970, by the broker's clock."""
        return self.at.stored_ms

    @property
    def born_host(self) -> str:
        """Return the producer's address, host:port."""
        return _host_text(&self.at.born)

    @property
    def store_host(self) -> str:
        """Return the broker's address, host:port, as it knows it."""
        return _host_text(&self.at.store)

    def __len__(self):
        return self.at.body.n

    def __repr__(self):
        return f"<ReceivedMessage {self.topic} {self.broker}/{self.queue}@{self.offset}, {len(self)} bytes>"


cdef list messages_of(Slice stored, str broker, Py_ssize_t* broken):
    """Return stored messages that lie back to back; ``broken`` counts those left out since their checksum is wrong.

    Raises RemoteProtocolError: something else lies between them.
    """
    cdef bytes data = _taken(stored)
    cdef Slice rest = slice_of(<const char*>data, len(data))
    cdef ReceivedMessage one
    cdef StoredMessage m
    cdef size_t size = 0
    cdef list found = []
    broken[0] = 0
    while rest.n:
        if read_stored(rest, &m, &size) != ST_OK:
            at = len(data) - rest.n
            raise RemoteProtocolError(
                f"what a broker sent at byte {at} of {len(data)} is no message", details={"at": at})
        rest = slice_of(rest.p + size, rest.n - size)
        if m.checksum and body_checksum(m.body) != m.checksum:
            broken[0] += 1
            continue
        one = <ReceivedMessage>make(<PyTypeObject*>ReceivedMessage, CORE_ARGS)
        one.data, one.at, one.broker = data, m, broker
        found.append(one)
    return found


def read_messages(bytes stored not None, str broker not None):
    """Return the messages of a body of stored messages, and how many more have a wrong checksum.

    Raises RemoteProtocolError.
    """
    cdef Py_ssize_t broken
    found = messages_of(slice_of(<const char*>stored, len(stored)), broker, &broken)
    return found, broken
