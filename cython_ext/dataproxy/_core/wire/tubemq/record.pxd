"""Records as a broker keeps them: a message with its header, and its entry in the index."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct Record:
    int32_t checksum
    int32_t partition
    int64_t offset              # -1, as brokers write it
    int64_t received_ms
    int32_t address
    int32_t key_code            # payload: filter_code, or -1
    int64_t id
    int32_t flag
    Slice payload


ctypedef struct IndexEntry:
    int32_t partition
    int64_t at                  # of the record, in the data
    int32_t size                # of the record
    int32_t key_code
    int64_t received_ms


cdef void put_record_head(uint8_t* to, const Record* r) noexcept nogil
cdef int read_record(Slice data, Record* out, size_t* size) noexcept nogil
cdef void put_index_entry(uint8_t* to, const IndexEntry* e) noexcept nogil
cdef void read_index_entry(const uint8_t* p, IndexEntry* out) noexcept nogil
