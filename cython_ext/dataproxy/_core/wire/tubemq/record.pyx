"""Records of a store, written and read; the layout is that of TubeMQ's brokers.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32, load_be64, store_be32, store_be64
from dataproxy._core.wire.tubemq.const cimport RECORD_HEAD, RECORD_TOKEN

cdef enum:                      # a record's header; its length counts what follows the length
    RECORD_AT_LENGTH = 0
    RECORD_AT_TOKEN = RECORD_AT_LENGTH + 4
    RECORD_AT_CHECKSUM = RECORD_AT_TOKEN + 4
    RECORD_AT_PARTITION = RECORD_AT_CHECKSUM + 4
    RECORD_AT_OFFSET = RECORD_AT_PARTITION + 4
    RECORD_AT_RECEIVED = RECORD_AT_OFFSET + 8
    RECORD_AT_ADDRESS = RECORD_AT_RECEIVED + 8
    RECORD_AT_KEY = RECORD_AT_ADDRESS + 4
    RECORD_AT_ID = RECORD_AT_KEY + 4
    RECORD_AT_FLAG = RECORD_AT_ID + 8

cdef enum:                      # an entry of the index
    INDEX_AT_PARTITION = 0
    INDEX_AT_PLACE = INDEX_AT_PARTITION + 4
    INDEX_AT_SIZE = INDEX_AT_PLACE + 8
    INDEX_AT_KEY = INDEX_AT_SIZE + 4
    INDEX_AT_RECEIVED = INDEX_AT_KEY + 4


cdef void put_record_head(uint8_t* to, const Record* r) noexcept nogil:
    """Write the RECORD_HEAD bytes before the payload."""
    store_be32(to + RECORD_AT_LENGTH, <uint32_t>(RECORD_HEAD - 4 + r.payload.n))
    store_be32(to + RECORD_AT_TOKEN, RECORD_TOKEN)
    store_be32(to + RECORD_AT_CHECKSUM, <uint32_t>r.checksum)
    store_be32(to + RECORD_AT_PARTITION, <uint32_t>r.partition)
    store_be64(to + RECORD_AT_OFFSET, <uint64_t>r.offset)
    store_be64(to + RECORD_AT_RECEIVED, <uint64_t>r.received_ms)
    store_be32(to + RECORD_AT_ADDRESS, <uint32_t>r.address)
    store_be32(to + RECORD_AT_KEY, <uint32_t>r.key_code)
    store_be64(to + RECORD_AT_ID, <uint64_t>r.id)
    store_be32(to + RECORD_AT_FLAG, <uint32_t>r.flag)


cdef int read_record(Slice data, Record* out, size_t* size) noexcept nogil:
    """Read the first record of ``data``, which has ``size`` bytes; ST_OK, ST_NEED_DATA or ST_PROTOCOL."""
    cdef const uint8_t* p = data.p
    cdef uint32_t length
    if data.n < RECORD_HEAD:
        return ST_NEED_DATA
    length = load_be32(p + RECORD_AT_LENGTH)
    if length < RECORD_HEAD - 4 or length > 0x7FFFFFFF or load_be32(p + RECORD_AT_TOKEN) != RECORD_TOKEN:
        return ST_PROTOCOL
    size[0] = <size_t>length + 4
    if data.n < size[0]:
        return ST_NEED_DATA
    out.checksum = <int32_t>load_be32(p + RECORD_AT_CHECKSUM)
    out.partition = <int32_t>load_be32(p + RECORD_AT_PARTITION)
    out.offset = <int64_t>load_be64(p + RECORD_AT_OFFSET)
    out.received_ms = <int64_t>load_be64(p + RECORD_AT_RECEIVED)
    out.address = <int32_t>load_be32(p + RECORD_AT_ADDRESS)
    out.key_code = <int32_t>load_be32(p + RECORD_AT_KEY)
    out.id = <int64_t>load_be64(p + RECORD_AT_ID)
    out.flag = <int32_t>load_be32(p + RECORD_AT_FLAG)
    out.payload = slice_of(p + RECORD_HEAD, size[0] - RECORD_HEAD)
    return ST_OK


cdef void put_index_entry(uint8_t* to, const IndexEntry* e) noexcept nogil:
    """Write the INDEX_SIZE bytes of an entry."""
    store_be32(to + INDEX_AT_PARTITION, <uint32_t>e.partition)
    store_be64(to + INDEX_AT_PLACE, <uint64_t>e.at)
    store_be32(to + INDEX_AT_SIZE, <uint32_t>e.size)
    store_be32(to + INDEX_AT_KEY, <uint32_t>e.key_code)
    store_be64(to + INDEX_AT_RECEIVED, <uint64_t>e.received_ms)


cdef void read_index_entry(const uint8_t* p, IndexEntry* out) noexcept nogil:
    """Read the INDEX_SIZE bytes of an entry."""
    out.partition = <int32_t>load_be32(p + INDEX_AT_PARTITION)
    out.at = <int64_t>load_be64(p + INDEX_AT_PLACE)
    out.size = <int32_t>load_be32(p + INDEX_AT_SIZE)
    out.key_code = <int32_t>load_be32(p + INDEX_AT_KEY)
    out.received_ms = <int64_t>load_be64(p + INDEX_AT_RECEIVED)
