"""Read access for Python: every call copies from one short read transaction, without the GIL.

Locality: GIL.  Locks: none here; the functions of ``ReaderOps`` take those that their modules
name (reader, memory).
"""

import os

from dataproxy.errors import ClosedError, ForkedError

from libc.stddef cimport size_t
from libc.stdint cimport SIZE_MAX, uint32_t, uint64_t

from dataproxy._core.base.crc cimport crc32c
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.server.store.header cimport QueueHeader, header_read
from dataproxy._core.server.store.reader cimport (
    NamePlace,
    NameRow,
    ReadBatch,
    ReadRow,
    batch_free,
    batch_init,
    durable_reader,
)
from dataproxy._core.server.store.catalog cimport CATALOG_NAME_MAX
from dataproxy._core.server.store.env cimport FAULT_CHECKSUM, STORE_FORMAT as FORMAT
from dataproxy._core.server.store.shared cimport entry_fault, shared_env, store_fault

STORE_FORMAT = <int>FORMAT


def checksum(const unsigned char[:] data, unsigned int before=0):
    """Return the CRC-32C of bytes that follow those with the checksum ``before``."""
    return crc32c(before, &data[0] if data.shape[0] else NULL, <size_t>data.shape[0])


cdef class StoreView:
    """Read a store; ``StoreView.open(path)`` for a durable one, ``StoreCore`` for the one it appends to.

    Any thread may call any method.
    """

    def __cinit__(self, *args, **kwargs):
        self._pid = os.getpid()
        self._names = {}
        self._closed = True

    @staticmethod
    def open(str path):
        """Open the durable store in a directory for reading.  Raises StoreError."""
        cdef StoreView view = StoreView.__new__(StoreView)
        view._shared = shared_env(path, False, 0)
        view._reader = durable_reader()
        view._source = &view._shared.env
        view.path = path
        view._closed = False
        return view

    def close(self):
        """Release the store; idempotent."""
        self._closed = True

    def read(self, str topic, uint32_t partition, uint64_t offset, size_t max_entries=1024, size_t max_bytes=1 << 20,
             str stream=None):
        """Return entries from ``offset`` on, oldest first: [(offset, header, InLongMsg bytes)].

        The header is (receive_ms, data_time_ms, records, stream_id, source, node).  With ``stream`` only
        entries of that stream.  A batch ends after ``max_entries`` or when ``max_bytes`` are reached; one
        entry is always given.  Every entry is compared with its checksum: one that differs ends the batch, and as
        the first of a batch it is a StoreError (code STORE_DAMAGED) whose details have its ``offset``; what is behind
        it can be read from the next offset on.  Raises StoreError, ClosedError.
        """
        cdef bytes topic_raw = _raw(topic)
        cdef bytes stream_raw = b"" if stream is None else _raw(stream)
        cdef Slice topic_slice = _slice(topic_raw)
        cdef Slice stream_slice = _slice(stream_raw)
        cdef const Slice* only = NULL if stream is None else &stream_slice
        cdef ReadBatch batch
        cdef int status
        cdef uint64_t generation
        self._ensure_open()
        batch_init(&batch)
        try:
            while True:
                with nogil:
                    status = self._reader.read(self._source, topic_slice, partition, only, offset, max_entries,
                                               max_bytes, &batch)
                if batch.error == FAULT_CHECKSUM:
                    raise entry_fault(self.path or "", topic, partition, batch.damaged)
                self._check(status, batch.error)
                generation = batch.generation
                if self._generation != generation:
                    self._names_of(True)
                found = self._entries(topic, partition, &batch)
                if self._generation == generation:      # else numbers of streams got other names meanwhile
                    return found
        finally:
            batch_free(&batch)

    def stream_offsets(self, str topic, uint32_t partition, str stream, uint64_t start, size_t n):
        """Return up to ``n`` offsets of a stream's entries, the first at or after ``start``.  Raises StoreError."""
        cdef bytes topic_raw = topic.encode()
        cdef bytes stream_raw = stream.encode()
        cdef Slice topic_slice = _slice(topic_raw)
        cdef Slice stream_slice = _slice(stream_raw)
        cdef ReadBatch batch
        cdef ReadRow* rows
        cdef int status
        self._ensure_open()
        batch_init(&batch)
        try:
            with nogil:
                status = self._reader.offsets(self._source, topic_slice, partition, stream_slice, start, n, &batch)
            self._check(status, batch.error)
            rows = <ReadRow*>batch.rows.p
            return [rows[i].offset for i in range(batch.rows.n // sizeof(ReadRow))]
        finally:
            batch_free(&batch)

    def logs(self, str topic=None):
        """Return [(topic, partition, first_offset, next_offset, entries, records, bytes)] of all logs, or of a topic's.

        What those of a topic cost grows with its partitions, not with the names in the store.  Raises StoreError.
        """
        return [row[:2] + row[3:] for row in self._names_of(False, topic)]

    def counts(self):
        """Return what is stored by stream: {(topic, stream_id): (entries, records, bytes)}.  Raises StoreError."""
        found = {}
        for topic, _, stream, _, _, entries, records, size in self._names_of(True):
            before = found.get((topic, stream), (0, 0, 0))
            found[topic, stream] = (before[0] + entries, before[1] + records, before[2] + size)
        return found

    def stream_page(self, tuple after, size_t most):
        """Return up to ``most`` streams of logs behind a place (None: from the first on), and the next place or None.

        The rows are (topic, partition, stream, entries, records, bytes), in an order of the store's own; a place is
        (log number, partition, stream number, topic, stream), as this method gave it.  What comes or goes meanwhile may
        be there or not.  Raises StoreError, ClosedError.
        """
        cdef ReadBatch batch
        cdef NamePlace place
        cdef NameRow* last
        cdef bytes topic
        cdef bytes stream
        cdef int status
        cdef list found
        self._ensure_open()
        if after is not None:
            place.log, place.partition, place.stream, group, name = after
            topic = group.encode("utf-8", "surrogateescape")[:CATALOG_NAME_MAX]
            stream = name.encode("utf-8", "surrogateescape")[:CATALOG_NAME_MAX]
            place.topic = _slice(topic)
            place.name = _slice(stream)
        batch_init(&batch)
        try:
            with nogil:
                status = self._reader.streams(self._source, NULL if after is None else &place, most, &batch)
            self._check(status, batch.error)
            found = [row[:3] + row[5:] for row in self._rows(&batch)]
            if not found or len(found) < most:
                return found, None
            last = <NameRow*>batch.rows.p + (len(found) - 1)
            group, _, name = found[len(found) - 1][:3]
            return found, (last.log, last.partition, last.stream, group, name)
        finally:
            batch_free(&batch)

    cdef int _ensure_open(self) except -1:
        """Refuse a closed store and one inherited by a fork."""
        if self._closed:
            raise ClosedError("the store is closed", hint="open it again")
        if self._pid != os.getpid():
            raise ForkedError("the store was opened before a fork", hint="open it in the child process")
        return 0

    cdef int _check(self, int status, int error) except -1:
        """Raise the error for a reader's status."""
        if status == ST_OK:
            return 0
        if status == ST_NO_MEMORY:
            raise MemoryError
        raise store_fault(error, self.path or "", "read the store")

    cdef list _entries(self, str topic, uint32_t partition, ReadBatch* batch):
        """Turn a batch into Python objects."""
        cdef ReadRow* rows = <ReadRow*>batch.rows.p
        cdef QueueHeader header
        cdef size_t head = 0
        cdef size_t i
        cdef list found = []
        for i in range(batch.rows.n // sizeof(ReadRow)):
            if header_read(batch.data.p + rows[i].start, rows[i].size, &header, &head) != ST_OK:
                raise entry_fault(self.path or "", topic, partition, rows[i].offset)
            found.append((
                rows[i].offset,
                (header.receive_ms, header.data_time_ms, header.records,
                 self._stream_name(topic, partition, header.stream), _text(header.source), _text(header.node)),
                batch.data.p[rows[i].start + head:rows[i].start + rows[i].size],
            ))
        return found

    cdef str _stream_name(self, str topic, unsigned int partition, unsigned int number):
        """Return the name of a stream by its number in the log."""
        cdef dict names = self._names.get((topic, partition))
        if names is None or number not in names:
            self._names_of(True)
            names = self._names.get((topic, partition), {})
        return names.get(number, "")

    cdef list _names_of(self, bint streams, str topic=None):
        """Return rows (topic, partition, stream, first, next, entries, records, bytes) of all streams, or of logs."""
        cdef bytes raw = b"" if topic is None else _raw(topic)
        cdef Slice wanted = _slice(raw)
        cdef const Slice* only = NULL if topic is None else &wanted
        cdef ReadBatch batch
        cdef NameRow* row
        cdef size_t i
        cdef int status
        cdef list found
        self._ensure_open()
        batch_init(&batch)
        try:
            with nogil:
                if streams:
                    status = self._reader.streams(self._source, NULL, SIZE_MAX, &batch)
                else:
                    status = self._reader.logs(self._source, only, &batch)
            self._check(status, batch.error)
            if streams and self._generation != batch.generation:
                self._names = {}
                self._generation = batch.generation
            found = self._rows(&batch)
            for i in range(len(found) if streams else 0):
                row = <NameRow*>batch.rows.p + i
                self._names.setdefault(found[i][:2], {})[row.stream] = found[i][2]
            return found
        finally:
            batch_free(&batch)

    cdef list _rows(self, ReadBatch* batch):
        """Turn rows of logs or streams into Python objects."""
        cdef NameRow* row
        cdef size_t i
        cdef list found = []
        for i in range(batch.rows.n // sizeof(NameRow)):
            row = <NameRow*>batch.rows.p + i
            topic = _text(slice_of(batch.data.p + row.start, row.topic_size))
            stream = _text(slice_of(batch.data.p + row.start + row.topic_size, row.name_size))
            found.append((topic, row.partition, stream, row.first, row.next,
                          row.tally.entries, row.tally.records, row.tally.bytes))
        return found


cdef inline Slice _slice(bytes raw):
    """Return the bytes of ``raw``, which the caller keeps."""
    return slice_of(<const char*>raw, <size_t>len(raw))


cdef inline bytes _raw(str name):
    """Return the bytes of a name that may not be UTF-8; of a text that is none, b"", which names nothing."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return b""


cdef inline str _text(Slice slice):
    """Return a text that may not be UTF-8."""
    return (<const char*>slice.p)[:slice.n].decode("utf-8", "surrogateescape") if slice.n else ""
