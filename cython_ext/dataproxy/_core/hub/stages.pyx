"""The one place that knows who watches the stages of commits."""

cdef StageHook _hook = NULL


cdef void stages_watch(StageHook hook) noexcept nogil:
    """Have ``hook`` called at every stage.  Locality: any thread, before the hub starts.  Locks: none."""
    global _hook
    _hook = hook


cdef void stage_passed(int stage) noexcept nogil:
    """Tell the watcher, if there is one.  Locality: the thread that opens the store, or commits.  Locks: none."""
    if _hook != NULL:
        _hook(stage)
