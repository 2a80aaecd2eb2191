"""The messages of a pack as columns of Arrow."""

from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.consumer.tubepack cimport TubePack
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef enum ColumnKind:
    CO_TOPIC = 0
    CO_PARTITION = 1
    CO_PACK_OFFSET = 2
    CO_INDEX = 3
    CO_ID = 4
    CO_ATTRIBUTES = 5
    CO_BODY = 6
    CO_OFFSET = 7           # of the message; null where it is not known
    CO_TIME = 8             # its attribute `$msgTime$`, by a clock without a zone; null without one
    CO_UTC = 9              # the same by the clock of UTC
    COLUMN_KINDS = 10


ctypedef struct Columns:    # what is wanted of a pack
    const int* kinds        # in their order
    int n
    int64_t rows            # the first ones of the pack
    int64_t first           # offset of the first message, below 0: offsets are not known
    Slice topic
    Slice partition


# The schema of columns, and the columns; ST_OK or ST_NO_MEMORY, then nothing is left to release.
cdef int columns_schema(const int* kinds, int n, ArrowSchema* out) noexcept nogil
cdef int columns_of(const TubePack* p, const Columns* wanted, ArrowArray* out) noexcept nogil
