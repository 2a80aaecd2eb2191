"""Queue header in front of every stored InLongMsg.

Layout, version 1, big-endian::

    0   u8   header version (1)
    1   u8   msgEnType (2: the value behind the header is an InLongMsg)
    2   u8   version (2: message queue format of InLong)
    3   u8   0
    4   u16  size of the header in bytes
    6   u16  0
    8   i64  rt, receive time in ms
    16  i64  data time in ms
    24  u32  records
    28  u32  number of the stream in its log, given by the store
    32  u8   length of srcIp, then its text
    ..  u8   length of dpIp, then its text
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.slice cimport Slice


cdef enum HeaderConst:
    HEADER_VERSION = 1
    HEADER_ENCODING = 2         # msgEnType: InLongMsg
    HEADER_QUEUE_VERSION = 2    # version
    HEADER_AT_SIZE = 4
    HEADER_AT_RECEIVE = 8
    HEADER_AT_TIME = 16
    HEADER_AT_RECORDS = 24
    HEADER_AT_STREAM = 28
    HEADER_FIXED = 32
    HEADER_MAX = 32 + 2 + 255 + 255


ctypedef struct QueueHeader:
    int64_t receive_ms
    int64_t data_time_ms
    uint32_t records
    uint32_t stream         # filled by the store
    Slice source            # srcIp, at most 255 bytes
    Slice node              # dpIp, at most 255 bytes


cdef size_t header_size(const QueueHeader* header) noexcept nogil
cdef size_t header_write(const QueueHeader* header, uint8_t* out) noexcept nogil
cdef int header_read(const uint8_t* p, size_t n, QueueHeader* header, size_t* size) noexcept nogil
