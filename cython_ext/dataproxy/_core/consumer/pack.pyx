"""Packs for Python: messages are made when they are looked at, from the memory of the pack.

Locality: GIL, any thread.  Locks: none.
"""

cimport cython
from copy import copy
from cpython.number cimport PyNumber_AsSsize_t

from dataproxy._core.base.made cimport BY_CORE
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.consumer.tubepack cimport (
    PO_CONFIRMED, PO_EXPIRED, PO_HELD, PO_ROLLED_BACK, TubeItem, TubePack, tubepack_let_go,
)
from dataproxy._core.plat.atomic cimport atomic_load

__all__ = ["Pack", "Record"]

cdef dict OUTCOMES = {
    PO_HELD: "held", PO_CONFIRMED: "confirmed", PO_ROLLED_BACK: "rolled_back", PO_EXPIRED: "expired",
}


cdef bytes _taken(Slice s):
    return (<const char*>s.p)[:s.n] if s.n else b""


cdef dict _attributes(Slice s, const TubePack* p):
    """Return the attributes of a text of pairs; of a key that comes twice the first one counts."""
    cdef dict found = {}
    cdef str mark = chr(p.sign_mark)
    for pair in _taken(s).decode("utf-8", "surrogateescape").split(chr(p.pair_mark)):
        key, sign, value = pair.partition(mark)
        if key and sign:
            found.setdefault(key, value)
    return found


@cython.final
cdef class Record:
    """One message of a pack.  Made by the pack; it keeps the pack's memory.  Any thread."""

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("records are made by a Pack")

    cdef TubeItem* item(self):
        """Return the message's place in the memory of the pack."""
        return &self.owner.pack.items[self.index]

    @property
    def body(self) -> bytes:
        """Return the message's bytes, as a copy.  Raises RemoteProtocolError: they are packed in an unknown way."""
        if self.owner.faults is not None and self.index in self.owner.faults:
            raise copy(self.owner.faults[self.index])
        return _taken(self.item().body)

    @property
    def id(self) -> int:
        """Return the broker's number of the message: unique while one broker runs; of RocketMQ, its offset."""
        return self.item().id

    @property
    def attributes(self) -> dict:
        """Return the attributes; ``$msgType$`` is what filters compare, ``$msgTime$`` a time to the minute.

        Of RocketMQ, the properties: ``TAGS``, ``KEYS``, and those of the sender.
        """
        return _attributes(self.item().attribute, self.owner.pack)

    @property
    def topic(self) -> str:
        """Return the topic."""
        return self.owner.topic

    @property
    def partition(self) -> str:
        """Return the key of the partition, ``broker:topic:partition``."""
        return self.owner.partition

    def __reduce__(self):
        raise TypeError("a Record belongs to its Pack and cannot be copied or pickled; send its body and attributes")

    def __repr__(self):
        return f"<Record {self.index} of {self.owner.partition}, {len(self.body)} bytes>"


@cython.final
cdef class Pack:
    """Messages of one partition that came together, and are confirmed together.

    ``topic`` and ``partition`` (``broker:topic:partition``) say where it comes from.  It is a sequence of Record.
    ``done``: its confirm was asked for, whatever became of that.
    Made by a Consumer.  Any thread.
    """

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("packs are made by a Consumer")

    def __dealloc__(self):
        tubepack_let_go(self.pack)

    @staticmethod
    cdef Pack make(TubePack* pack, object consumer, str topic, str partition):
        """Return the object of a pack, of which it takes over one use."""
        cdef Pack self = Pack.__new__(Pack, BY_CORE)
        self.pack, self.consumer, self.topic, self.partition = pack, consumer, topic, partition
        return self

    cdef int check_bodies(self) except -1:
        """Raise the RemoteProtocolError of the first body that cannot be read."""
        if self.faults is not None:
            raise copy(next(iter(self.faults.values())))    # else its traceback keeps the variables of who has looked
        return 0

    def __len__(self):
        return self.pack.n

    def __getitem__(self, index):
        cdef Record record
        cdef Py_ssize_t i
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.pack.n))]
        i = PyNumber_AsSsize_t(index, IndexError)
        if i < 0:
            i += self.pack.n
        if not 0 <= i < self.pack.n:
            raise IndexError(f"the pack has {self.pack.n} records, and no record {index}")
        record = Record.__new__(Record, BY_CORE)
        record.owner, record.index = self, <int>i
        return record

    def __iter__(self):
        cdef int i
        for i in range(self.pack.n):
            yield self[i]

    def bodies(self):
        """Return the bodies of all messages as a list of bytes: faster than record by record."""
        cdef int i
        self.check_bodies()
        return [_taken(self.pack.items[i].body) for i in range(self.pack.n)]

    def to_arrow(self):
        """Return the messages as one batch of columns, which anything with Arrow's C interface reads.

        Columns: topic, partition, offset (of the pack), index, id, attributes, body.  pyarrow, pandas, Polars and
        others take it as it is: ``pa.record_batch(pack.to_arrow())``, ``pl.DataFrame(pack.to_arrow())``.
        """
        from dataproxy._core.consumer.arrowbatch import ArrowBatch      # packs are read without it as well

        return ArrowBatch(self)

    @property
    def offset(self) -> int:
        """Return where the pack begins: in bytes of its store's index, 28 for a message; of RocketMQ, in messages."""
        return self.pack.offset

    @property
    def max_offset(self) -> int:
        """Return the end of the store, or queue, when the pack was read; -1 if the broker did not say."""
        return self.pack.max_offset

    @property
    def nbytes(self) -> int:
        """Return the bytes of the pack in memory."""
        return self.pack.memory

    @property
    def outcome(self) -> str:
        """Return ``held``, ``confirmed``, ``rolled_back`` or ``expired``."""
        return OUTCOMES[atomic_load(&self.pack.outcome)]

    @property
    def code(self) -> int:
        """Return why it expired: a broker's code, or below 0 a reason of this side."""
        return self.pack.code if atomic_load(&self.pack.outcome) == PO_EXPIRED else 0

    def confirm(self, *, wait=True):
        """Confirm that the messages are done with; see ``Consumer.confirm``.  Of an AsyncConsumer it is awaited."""
        return self.consumer.confirm(self, wait=wait)

    def rollback(self):
        """Give the messages back, to come again; see ``Consumer.rollback``."""
        self.consumer.rollback(self)

    def __reduce__(self):
        raise TypeError("a Pack belongs to its consumer and cannot be copied or pickled; send bodies() or to_arrow()")

    def __repr__(self):
        return f"<Pack of {self.pack.n} records, {self.partition} from {self.pack.offset}, {self.outcome}>"
