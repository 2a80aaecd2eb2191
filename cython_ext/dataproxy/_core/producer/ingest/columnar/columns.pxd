"""A record batch with columns for body, group, stream, data time and attributes, as runs of rows."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.newstreams cimport NewStreams
from dataproxy._core.producer.ingest.rows cimport Rows, RowsCheck
from dataproxy._core.producer.accumulate.streams cimport Stream


cdef enum RunProblem:       # why the run builder stopped at a row
    RUN_DONE = 0
    RUN_NEW_STREAM = 1      # the names of this row are not known yet, and Python has to judge them
    RUN_BAD_BODY = 2
    RUN_BAD_TIME = 3
    RUN_BAD_ATTRS = 4
    RUN_NO_MEMORY = 5
    RUN_NULL_NAME = 6
    RUN_BAD_ID = 7
    RUN_MARKED = 8          # an earlier check refused the row
    RUN_BAD_KEY = 9


ctypedef struct TimeColumn:
    bint present
    const int64_t* values
    const uint8_t* validity
    int64_t offset
    int64_t divisor         # values / divisor, or values * multiplier, are milliseconds
    int64_t multiplier


ctypedef struct AttrColumn:     # map<string, string>
    bint present
    bint texts              # `values` has the whole text of each row, and there is nothing else
    const int32_t* offsets
    const uint8_t* validity
    int64_t offset
    Rows keys
    Rows values


ctypedef struct KnownKeys:      # names of attributes that were checked
    Slice names[64]         # borrowed from the column
    int n
    int last                # where the newest question was answered


ctypedef struct Run:        # consecutive rows that go to one pack kind of one stream
    Stream* stream
    int64_t when            # data time of the first row in ms, NO_TIME without one
    int64_t start
    int64_t end
    size_t text_at          # item attributes in RunTable.text
    size_t text_n
    int key_bucket          # NO_KEY: its rows have no key


ctypedef struct Columns:    # borrowed from the Arrow structs
    Rows value              # with value.ids, if there is a column of ids
    Rows ids
    bint ids_made           # the ids were made here, so they need no check
    bint has_group
    Rows group
    bint has_stream
    Rows stream
    TimeColumn time
    AttrColumn attrs
    int key_buckets         # 0: there is no column of keys
    Rows key
    Slice default_group     # of all rows, or of those whose column is null
    Slice default_stream
    const uint8_t* marked   # rows that cannot be sent, NULL: none
    bint exact_time
    Slice least             # attribute text of rows that have none


ctypedef struct RunTable:
    Run* runs
    int64_t n
    int64_t cap
    Buf text
    int64_t next_row        # first row not yet in a run
    RowsCheck check         # of the last bad body; nulls and empties over all rows
    int problem             # RunProblem at next_row
    int64_t messages
    int64_t bytes           # charge of all messages
    int64_t body_bytes
    bint apart              # the row before was left out, so the next one begins a new run
    NewStreams made         # streams that these rows are the first to name
    Stream* ahead[64]       # of the next rows, NULL where it is not known yet or a name is null
    int64_t ahead_from      # first of these rows
    int64_t ahead_to


cdef bint known_key(KnownKeys* known, const AttrColumn* column, int64_t k) noexcept nogil
cdef void note_key(KnownKeys* known, const AttrColumn* column, int64_t k) noexcept nogil
cdef bint time_of(const TimeColumn* column, int64_t i, int64_t* ms) noexcept nogil
cdef void build_runs(
    Batcher* b, const Columns* columns, RunTable* table, bint skip_null, bint skip_empty, int lines,
) noexcept nogil
cdef void runs_free(RunTable* table) noexcept nogil
