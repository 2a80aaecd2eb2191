"""A key queue: packs of one key bucket, of which at most one has an unknown outcome at a time."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack, PackList


ctypedef struct KeyQueue:
    # Executor only.
    Pack* active            # on its way: its outcome is not known
    PackList held           # sealed packs behind it, in the order of sealing
    KeyQueue* next_freed        # in the pool's list of key queues whose next pack may be sent
    bint freed
    # Guarded by the batcher's lock.
    Pack* open              # bodies are still appended to it
    size_t size_hint        # bytes of the last sealed pack
    int executor            # constant
    int bucket              # constant: of its keys
    # Atomic.
    int64_t unsettled       # sealed packs without a result
