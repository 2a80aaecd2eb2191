"""Queue header in front of every stored InLongMsg.

Layout, version 2, big-endian::

    0   u8   header version (2)
    1   u8   msgEnType (2: the value behind the header is an InLongMsg)
    2   u8   version (2: message queue format of InLong)
    3   u8   0
    4   u16  size of the header in bytes
    6   u16  0
    8   i64  rt, receive time in ms
    16  i64  data time in ms
    24  u32  records
    28  u32  number of the stream in its log, given by the store
    32  i64  the store's own time in ms when it was stored, given by the store
    40  u32  CRC-32C of the InLongMsg, given by the store
    44  u32  CRC-32C of the entry's key and of the header without this field, given by the store
    48  u8   length of srcIp, then its text
    ..  u8   length of dpIp, then its text

The last of the fixed fields also covers the other checksum.  Because it covers the key, it detects an entry that is
stored under a wrong key.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.slice cimport Slice


cdef enum HeaderConst:
    HEADER_VERSION = 2
    HEADER_ENCODING = 2         # msgEnType: InLongMsg
    HEADER_QUEUE_VERSION = 2    # version
    HEADER_AT_SIZE = 4
    HEADER_AT_RECEIVE = 8
    HEADER_AT_TIME = 16
    HEADER_AT_RECORDS = 24
    HEADER_AT_STREAM = 28
    HEADER_AT_STORED = 32
    HEADER_AT_CRC = 40
    HEADER_AT_OWN_CRC = 44
    HEADER_FIXED = 48
    HEADER_MAX = 48 + 2 + 255 + 255


ctypedef struct QueueHeader:
    int64_t receive_ms
    int64_t data_time_ms
    uint32_t records
    uint32_t stream         # filled by the store
    int64_t stored_ms       # the store's own time, filled by it
    Slice source            # srcIp, at most 255 bytes
    Slice node              # dpIp, at most 255 bytes


cdef size_t header_size(const QueueHeader* header) noexcept nogil
cdef size_t header_write(const QueueHeader* header, uint8_t* out) noexcept nogil
# What the store fills in; `key` is the entry's, of `key_n` bytes.
cdef void header_place(uint8_t* p, uint32_t stream, int64_t stored_ms) noexcept nogil
cdef void header_seal(uint8_t* p, size_t n, const void* key, size_t key_n) noexcept nogil
# ST_OK, or ST_STORE when the header, or with `whole` the value, is not what was stored under the key.
cdef int header_check(const uint8_t* p, size_t n, const void* key, size_t key_n, bint whole) noexcept nogil
# Where the header ends; 0: the value begins with none.
cdef size_t header_end(Slice value) noexcept nogil
cdef int header_read(const uint8_t* p, size_t n, QueueHeader* header, size_t* size) noexcept nogil
