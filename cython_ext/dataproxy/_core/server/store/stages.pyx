"""The hook that is called at the stages of commits.

Locks: none.
"""

cdef StageHook _hook = NULL


cdef void stages_watch(StageHook hook) noexcept nogil:
    """Set the function that is called at every stage.  Locality: any thread, before the hub starts."""
    global _hook
    _hook = hook


cdef void stage_passed(int stage) noexcept nogil:
    """Call the hook, if there is one.  Locality: the thread that opens the store, or commits."""
    if _hook != NULL:
        _hook(stage)
