"""Ending the process at a stage of a commit, as ``kill -9`` would."""

from libc.signal cimport SIGKILL
from posix.signal cimport kill
from posix.unistd cimport getpid

from dataproxy._core.server.store.stages cimport STAGE_COUNT, stages_watch

__all__ = ["STAGES", "arm"]

STAGES = ("opening", "taken", "begun", "put", "forgotten", "dropped", "catalog", "written", "committed", "answered")
assert len(STAGES) == STAGE_COUNT

cdef int _stage = -1
cdef long _left = 0


def arm(str stage, long passages):
    """Kill this process when it passes the stage for the ``passages``-th time; before the hub starts."""
    global _stage, _left
    _stage = STAGES.index(stage)
    _left = passages
    stages_watch(_count)


cdef void _count(int stage) noexcept nogil:
    """Count a passage.  Locality: the thread that opens the store, or commits.  Locks: none."""
    global _left
    if stage == _stage:
        _left -= 1
        if _left == 0:
            kill(getpid(), SIGKILL)
