"""Stream handles: the sending calls of a producer, bound to one (group, stream, attributes)."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.accumulate.state cimport Extras
from dataproxy._core.producer.results.delivery cimport BatchDelivery, Delivery
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.plat.calltypes cimport Callable


cdef class SendPolicy:              # constant settings of the sending calls
    cdef int lines              # LineRule
    cdef bint skip_null
    cdef bint skip_empty
    cdef int family             # FrameSpec.family
    cdef bint ids               # messages can have ids that the caller chooses
    cdef bint arranged          # items are written again before they are framed: their bodies must be in the pack
    cdef bint single            # a frame has one message, and moves its bytes
    cdef Slice least            # attribute text of messages that have none; its bytes live as long as the process
    cdef object item_text           # (attrs, dt, frame keys) -> (data time in ms, attribute bytes)

    cdef int check_ids(self) except -1


cdef class Stream:
    # What a call reads comes first, in one cache line.
    cdef CoreHandle core
    cdef CStream* stream
    cdef SendPolicy policy
    cdef uint32_t generation    # of the process that `stream` belongs to; GIL
    cdef bint particular        # bodies are looked at or made before they are taken
    # The rest is for other calls.
    cdef object frame_keys          # names of the attributes on its frames
    cdef readonly str group_id
    cdef readonly str stream_id
    cdef bytes attrs
    cdef object serializer          # object -> bytes, None: bodies are bytes

    cdef object serialized(self, object body, object item)
    cdef list all_serialized(self, object bodies)
    cdef int bind(self) except -1
    cdef Stream like(self, CStream* stream, str group_id, str stream_id)
    cdef size_t max_body(self)
    cdef object extras(self, Extras* x, object attrs, object dt, object own_id, object key)
    cdef int put(
        self, object body, object attrs, object dt, object own_id, object key, PackResult** pack_result,
        uint32_t* index,
    ) except -1
    cdef int check_bytes(self, const uint8_t* p, size_t n, const Extras* x) except -1
    cdef bytes checked(self, object body, object attrs, object dt, object own_id, object key, object on_delivery)
    cdef int put_bytes(
        self, const uint8_t* p, size_t n, const Extras* x, PackResult** pack_result, uint32_t* index) except -1
    cdef Delivery sent(self, object body, object attrs, object dt, object own_id, object key, object on_delivery)
    cdef int watch_batch(self, BatchDelivery out, object on_delivery) except -1
    cdef int put_large(
        self, object owner, const uint8_t* p, size_t n, Extras* x, PackResult** pack_result, uint32_t* index,
    ) except -1
    cdef int put_rows(self, Rows* rows, const Extras* x, BatchDelivery out, int64_t before, object owner) except -1


cdef enum:
    FILLED = 56                 # bytes of a BoundSend's fields


cdef class BoundSend(Callable):
    cdef Engine* engine         # NULL: the handle has to be asked
    cdef CStream* stream
    cdef Stream owner
    cdef object __weakref__
    cdef char spare[FILLED]     # with the collector's header: two cache lines, of which calls touch only the second


cdef class Serialized:
    cdef bytes body


cdef bint send_quickly(Stream stream, PyObject* body) noexcept
cdef object serialized_once(Stream stream, object body)
cdef int append_blocking(
    CoreHandle core, CStream* stream, const Rows* rows, int64_t* at, int64_t end, const Extras* x,
    BatchDelivery out, int64_t before) except -1
cdef object outgrown(
    const Rows* rows, int64_t i, int64_t before, const CStream* stream, size_t attrs_n, int64_t accepted)
cdef int raise_full(CoreHandle core, int64_t accepted) except -1
cdef object partly(object error, int64_t accepted)
