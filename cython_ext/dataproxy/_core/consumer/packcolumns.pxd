"""The messages of a pack as columns of Arrow."""

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.consumer.tubepack cimport TubePack
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


# The schema of all packs, and the columns of one; ST_OK or ST_NO_MEMORY, then nothing is left to release.
cdef int columns_schema(ArrowSchema* out) noexcept nogil
cdef int columns_of(const TubePack* p, Slice topic, Slice partition, ArrowArray* out) noexcept nogil
