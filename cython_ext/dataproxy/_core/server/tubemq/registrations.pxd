"""Who reads a partition for a group, and where: registrations with a time limit, confirmed and pending positions.

Positions are offsets as clients know them: INDEX_BYTES for each message.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint64_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.server.tubemq.limits cimport Limit, RuleSets


cdef enum RegistrationConst:
    INDEX_BYTES = 28
    NO_POSITION = -1            # the group has never had the partition


cdef enum RegistrationCode:     # of answers
    REG_OK = 200
    REG_NO_OWNER = 401          # a confirm of who has no registration
    REG_TAKEN = 410             # another client has it
    REG_UNKNOWN = 411           # nobody has it
    REG_OTHER = 412             # another client has it now
    REG_FULL = 500              # there is no room for another group's partition


cdef enum ReadStatus:           # where a registration begins
    READ_STORED = 0             # where the group is; else at the oldest message
    READ_NEW = 1                # where the group is; else at the end
    READ_END = 2                # at the end, always


ctypedef struct Registration:   # one block: the struct, then group and topic; guarded by the table's mutex
    Registration* next          # of its bucket
    uint64_t hash
    Slice group
    Slice topic
    int32_t partition
    Slice owner                 # a block of its own; n 0: nobody
    int64_t until_us            # of the owner
    int64_t asked_us            # when the owner asked for messages last, or registered
    Slice filters               # a block of its own: items, each behind two bytes of length; n 0: all messages
    int64_t confirmed           # NO_POSITION until a client has begun
    int64_t pending             # read behind it, and not confirmed
    int64_t told                # the position that who keeps copies elsewhere was given last
    int64_t kept                # the position that the store is known to have
    uint64_t kept_version       # its version
    uint64_t version            # of owner and positions: what was found out under an older one is not noted
    Limit limit                 # of what its owner reads


ctypedef struct Standing:       # of a registration, when a request looked at it: another one has moved it since, or not
    uint64_t version
    int64_t pending


ctypedef struct Registrations:
    # Constant.
    HashKey key
    int64_t limit_us            # without a call, until an owner loses a partition
    size_t most_bytes
    pthread_mutex_t mutex       # guards everything below; the GIL is never taken while it is held
    Registration** buckets
    size_t size                 # a power of two
    size_t count
    size_t bytes
    uint64_t version            # the last one given; above those of all stored positions
    RuleSets rules


cdef int registrations_init(Registrations* t, const HashKey* key, int64_t limit_us, size_t most_bytes) noexcept nogil
cdef void registrations_free(Registrations* t) noexcept nogil
# The rest is for who holds the mutex.  NULL: it is not there.
cdef Registration* registration_find(
    const Registrations* t, Slice group, Slice topic, int32_t partition
) noexcept nogil
# The same, made if it is not there; NULL: there is no room for it, or no memory.
cdef Registration* registration_make(Registrations* t, Slice group, Slice topic, int32_t partition) noexcept nogil
cdef void registration_drop(Registrations* t, Registration* r) noexcept nogil
# REG_OK or REG_TAKEN, or REG_FULL; an owner whose time is over is removed by the call, which fails all the same.
cdef int registration_take(
    Registrations* t, Registration* r, Slice client, Slice filters, int64_t now_us
) noexcept nogil
# REG_OK with a new time limit, REG_UNKNOWN or REG_OTHER.
cdef int registration_use(const Registrations* t, Registration* r, Slice client, int64_t now_us) noexcept nogil
cdef int registration_leave(
    Registrations* t, Registration* r, Slice client, bint consumed, int64_t now_us
) noexcept nogil
cdef bint registration_expire(Registrations* t, Registration* r, int64_t now_us) noexcept nogil
cdef int64_t registration_begin(
    Registrations* t, Registration* r, int status, int64_t wanted, int64_t least, int64_t end
) noexcept nogil
cdef int64_t registration_locate(
    Registrations* t, Registration* r, bint consumed, bint manual, int64_t least, int64_t end
) noexcept nogil
cdef bint registration_book(
    Registrations* t, Registration* r, const Standing* seen, int64_t scanned, bint matched, bint manual
) noexcept nogil
cdef int64_t registration_commit(Registrations* t, Registration* r, bint consumed) noexcept nogil
# The group goes on at a position, whoever has the partition: what was read before is never confirmed.
cdef void registration_reset(Registrations* t, Registration* r, int64_t position) noexcept nogil
