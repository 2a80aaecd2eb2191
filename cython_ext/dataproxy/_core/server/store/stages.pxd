"""Stages that a commit passes, for tests that end the process at one of them.

Without such a test a stage costs a call and a branch, about twelve times for each commit.
"""


cdef enum Stage:
    STAGE_OPENING           # the databases of a store are open or made, and not committed
    STAGE_TAKEN             # the committer has a chain; nothing of it is written
    STAGE_BEGUN             # the write transaction has begun
    STAGE_PUT               # entries and their ids are put
    STAGE_FORGOTTEN         # ids past the window's limits are deleted
    STAGE_DROPPED           # entries past the retention limits are deleted
    STAGE_CATALOG           # the rows of logs and streams are put; the commit comes next
    STAGE_WRITTEN           # the commit is on disk
    STAGE_COMMITTED         # the store has returned; nobody has been told
    STAGE_ANSWERED          # the entries are back at the server loops
    STAGE_COUNT


ctypedef void (*StageHook)(int stage) noexcept nogil


cdef void stages_watch(StageHook hook) noexcept nogil       # NULL: nobody; before the hub starts
cdef void stage_passed(int stage) noexcept nogil
