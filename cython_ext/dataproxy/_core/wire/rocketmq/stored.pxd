"""Messages as a broker stores them and clients pull them, their ids and flags; items of a batch."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct Host:
    uint8_t address[16]
    size_t n                    # bytes of it: 4 or 16
    int32_t port


ctypedef struct StoredMessage:
    int32_t queue
    int32_t flag                # the user's
    int64_t queue_offset
    int64_t physical_offset     # a handle: it comes back in other calls
    int32_t sys_flag            # of it, SYS_BORN_V6 and SYS_STORE_V6 say what hosts have
    int64_t born_ms
    Host born
    int64_t stored_ms
    Host store
    int32_t reconsume_times
    int64_t prepared_offset
    uint32_t checksum           # as it stands there; written ones get that of their body
    Slice body
    Slice topic
    Slice properties


ctypedef struct BatchItem:
    int32_t flag
    Slice body
    Slice properties


cdef uint32_t body_checksum(Slice body) noexcept nogil
cdef int compression_of(int32_t sys_flag) noexcept nogil
cdef int read_stored(Slice data, StoredMessage* out, size_t* size) noexcept nogil
cdef size_t stored_size(const StoredMessage* m) noexcept nogil
cdef uint8_t* put_stored(uint8_t* to, const StoredMessage* m) noexcept nogil
cdef uint8_t* put_message_id(uint8_t* to, const Host* host, int64_t offset) noexcept nogil
cdef bint read_message_id(Slice text, Host* host, int64_t* offset) noexcept nogil
cdef int read_item(Slice data, BatchItem* out, size_t* size) noexcept nogil
cdef size_t item_size(const BatchItem* item) noexcept nogil
cdef uint8_t* put_item(uint8_t* to, const BatchItem* item) noexcept nogil
