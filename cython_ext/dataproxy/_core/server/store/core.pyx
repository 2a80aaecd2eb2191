"""The store for Python and for the hub's server: durable in a directory, or in memory.

Locks: none, except where a function says otherwise.
"""

import fcntl
import errno
import os
import threading
import uuid

from dataproxy.errors import ClosedError, StoreError

from libc.stdint cimport int64_t, uint64_t
from posix.unistd cimport close, getpid

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.server.committer cimport (
    COMMITTER_NOTICES,
    CommitterLimits,
    EntryNotice,
    committer_free,
    committer_init,
    committer_run,
    committer_stop,
)
from dataproxy._core.base.forks cimport forks_unwatch, forks_watch
from dataproxy._core.base.siphash cimport HashKey, hash_key
from dataproxy._core.server.store.window.dedupe cimport DedupeCounts, dedupe_counts, dedupe_free, window_init
from dataproxy._core.server.entries cimport Entry, EntryDone, StoreOps, entry_free_chain
from dataproxy._core.server.store.memory cimport memory_reader, memstore_free, memstore_init, memstore_ops, visit_memory
from dataproxy._core.server.store.reader cimport durable_reader
from dataproxy._core.server.store.window.rowblocks cimport rowblocks_init
from dataproxy._core.server.store.append cimport store_ops
from dataproxy._core.server.store.clock cimport storeclock_now
from dataproxy._core.server.store.env cimport env_error
from dataproxy._core.server.store.shared cimport prepare_directory, shared_env, store_fault
from dataproxy._core.server.store.txn cimport StoreLimits, store_free, store_init
from dataproxy._core.server.store.visits cimport visit_durable
from dataproxy._core.server.store.window.windowlog cimport windowlog_load, windowlog_unwatched
from dataproxy._core.plat.atomic cimport relaxed_load
from dataproxy._core.wire.registry cimport wire_of_server

cdef enum MapSize:
    MAP_SPARE = 64 << 20


cdef class StoreCore(StoreView):
    """Own a store and its committer.

    ``path`` None keeps entries in memory, at most ``max_bytes`` of them (the oldest are dropped and
    counted) and never more than half of the machine's memory.  A directory makes them durable: an append
    beyond ``max_bytes`` (values, and 64 bytes for each entry) is refused as a full disk is.
    ``retention_bytes`` and ``retention_ms`` drop the oldest entries of each log.  0 means no limit.
    ``dedupe_ids``, if not 0, keeps a de-duplication window of so many ids and of ``dedupe_ms``, and beside it one of
    ``dedupe_blocks`` blocks of 256 rows of the Spark sink and of ``dedupe_rows_ms``; with ``first_wins`` a known id
    that an application gave is not stored with other bytes either.
    ``map_bytes`` is the address space to begin with; it grows.  Raises StoreError when the directory is in
    use, foreign, damaged or of another version.
    """

    def __init__(self, str path=None, *, uint64_t max_bytes=0, uint64_t retention_bytes=0, int64_t retention_ms=0,
                 size_t queue_bytes=64 << 20, size_t commit_bytes=32 << 20, int64_t retain_every_ms=1000,
                 size_t map_bytes=1 << 30, int64_t dedupe_ms=600_000, uint64_t dedupe_ids=0,
                 int64_t dedupe_rows_ms=604_800_000, uint64_t dedupe_blocks=1000, bint first_wins=False):
        cdef StoreLimits limits
        cdef CommitterLimits pace
        if self._gate is not None:
            raise StoreError("the store is already open", hint="make a new object")
        rowblocks_init(&self._dedupe.blocks, dedupe_rows_ms, dedupe_blocks)
        self._gate = threading.Lock()
        self._ended = threading.Event()
        limits.max_bytes = max_bytes
        limits.retention_bytes = retention_bytes
        limits.retention_ms = retention_ms
        pace.queue_bytes = queue_bytes
        pace.commit_bytes = commit_bytes
        pace.retain_every_ms = retain_every_ms
        self.path = path
        if path is None:
            half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
            limits.max_bytes = min(max_bytes, half) if max_bytes else half
            self._open_memory(&limits, &pace)
            if dedupe_ids:
                self._open_window(dedupe_ms, dedupe_ids, first_wins)
        else:
            prepare_directory(path, True)
            self._claim()
            try:
                self._open_durable(&limits, &pace, map_bytes)
                if dedupe_ids:
                    self._open_window(dedupe_ms, dedupe_ids, first_wins)
                else:
                    self._open_unwatched()
            except BaseException:
                self._give_up()
                raise
        self._closed = False

    def __cinit__(self, *args, **kwargs):
        self._claims[0] = self._claims[1] = -1
        self._informed = []

    def __dealloc__(self):
        forks_unwatch(&self._forks)
        if self._pid != getpid():       # not os.getpid: the names of this module may be gone when Python ends
            return
        self._give_up()
        if self._has_committer:
            committer_free(&self._committer)
        if self._has_memory:
            memstore_free(&self._memory)
        if self._has_store:
            store_free(&self._store)
        dedupe_free(&self._dedupe)

    cdef int _claim(self) except -1:
        """Lock the directory for this process alone, not for its children.  Raises StoreError.

        Locality: GIL.
        """
        self._claims[0], self._claims[1] = _lock_directory(self.path)
        forks_watch(&self._forks, _give_up_in_child, <void*>self._claims)
        return 0

    cdef int _give_up(self) except -1:
        """Unlock the directory for other processes; idempotent.  Locality: GIL."""
        cdef int i
        forks_unwatch(&self._forks)
        for i in range(2):
            if self._claims[i] >= 0:
                close(self._claims[i])
                self._claims[i] = -1
        return 0

    cdef int _open_memory(self, const StoreLimits* limits, const CommitterLimits* pace) except -1:
        """Make the store in memory.  Locality: GIL."""
        if memstore_init(&self._memory, limits) != ST_OK:
            raise MemoryError
        self._has_memory = True
        self._reader = memory_reader()
        self._source = &self._memory
        return self._make_committer(memstore_ops(), <void*>&self._memory, pace)

    cdef int _open_durable(self, const StoreLimits* limits, const CommitterLimits* pace, size_t map_bytes) except -1:
        """Open the locked directory.  Locality: GIL."""
        cdef size_t map_limit = <size_t>1 << 46
        cdef const char* text
        cdef bytes number = _boot_number()
        cdef const unsigned char* boot = <const unsigned char*>number if number is not None else NULL
        cdef int error = 0
        cdef int status
        if 0 < limits.max_bytes < map_limit // 4:   # pages are not full, and dropped ones wait for reuse
            map_limit = 2 * limits.max_bytes + MAP_SPARE
        while map_bytes < 2 * _file_bytes(self.path):
            map_bytes *= 2
        map_bytes = min(map_bytes, map_limit)
        self._shared = shared_env(self.path, True, map_bytes)
        text = self._shared.path
        with nogil:
            status = store_init(&self._store, &self._shared.env, text, map_bytes, map_limit, limits, boot, &error)
        self._has_store = True
        if status == ST_NO_MEMORY:
            raise MemoryError
        if status != ST_OK:
            raise store_fault(error, self.path, "load the store")
        self._reader = durable_reader()
        self._source = &self._shared.env
        return self._make_committer(store_ops(), <void*>&self._store, pace)

    cdef int _open_window(self, int64_t keep_ms, uint64_t max_ids, bint first_wins) except -1:
        """Make the de-duplication window, in a durable store with what it holds.  Locality: GIL."""
        cdef bytes fresh = os.urandom(16)
        cdef HashKey key = hash_key(<const unsigned char*>fresh)
        cdef int error = 0
        self._dedupe.wire = wire_of_server()
        self._dedupe.first_wins = first_wins
        if not self._has_memory:
            key = hash_key(self._shared.env.ids_key)
        else:
            window_init(&self._dedupe.window, &key, keep_ms, max_ids)
            self._memory.dedupe = &self._dedupe
            self._has_window = True
            return 0
        self._window_log.dedupe = &self._dedupe
        self._window_log.env = &self._shared.env
        window_init(&self._dedupe.window, &key, keep_ms, max_ids)
        with nogil:
            error = windowlog_load(&self._window_log, storeclock_now(&self._store.clock), &self._store.last_txn)
        if error:
            raise store_fault(error, self.path, "load the de-duplication window of")
        self._store.window = &self._window_log
        self._has_window = True
        return 0

    cdef int _open_unwatched(self) except -1:
        """Note in a durable store that it has no window for now.  Locality: GIL."""
        cdef int error
        with nogil:
            error = windowlog_unwatched(&self._shared.env, &self._store.last_txn)
        if error:
            raise store_fault(error, self.path, "write to")
        return 0

    cdef const HashKey* window_key(self) noexcept:
        """Return the key that ids are hashed with, NULL without a window.  Locality: any thread."""
        return &self._dedupe.window.key if self._has_window else NULL

    cdef int _make_committer(self, const StoreOps* ops, void* store, const CommitterLimits* pace) except -1:
        """Make the committer.  Locality: GIL."""
        if committer_init(&self._committer, ops, store, _release, pace) != ST_OK:
            raise MemoryError
        self._has_committer = True
        self.committer = &self._committer
        return 0

    cdef int set_done(self, EntryDone done) except -1:
        """Set the function that gets entries back; before the loop starts.  Locality: GIL.  Locks: takes _gate."""
        with self._gate:
            if self._in_loop:
                raise ClosedError("the committer is already running", hint="set the receiver before starting it")
            self._committer.done = done
            self._served = True
        return 0

    cdef int inform(self, object who, EntryNotice noticed, void* context) except -1:
        """Have somebody, who owns ``context``, told of entries; before the loop starts.

        Locality: GIL.
        Locks: takes _gate.
        """
        with self._gate:
            if self._in_loop:
                raise ClosedError("the committer is already running", hint="attach the broker before starting it")
            if len(self._informed) == COMMITTER_NOTICES:
                raise ValueError(f"{COMMITTER_NOTICES} parts of a hub are told of entries already")
            self._committer.notice_context[<int>len(self._informed)] = context
            self._committer.noticed[<int>len(self._informed)] = noticed
            self._informed.append(who)
        return 0

    cdef Visitor visitor(self) noexcept:
        """Return the function that visits this store.  Locality: any thread."""
        return visit_memory if self._has_memory else visit_durable

    def run_committer(self):
        """Commit until ``stop``, without the GIL; to be called once, on a thread of its own.  Locks: takes _gate."""
        self._ensure_open()
        with self._gate:
            if self._in_loop:
                raise ClosedError("the committer was started before", hint="make a new store object")
            self._in_loop = True
        try:
            with nogil:
                committer_run(&self._committer)
        finally:
            self._ended.set()

    def stop(self):
        """Let the committer end after what is queued; idempotent, any thread."""
        if self._has_committer and self._pid == os.getpid():
            with nogil:
                committer_stop(&self._committer)

    def close(self):
        """Stop, wait until everything queued is committed and handed back, and release the directory.

        Idempotent.  Not from the committing thread.
        Locks: takes _gate.
        """
        cdef bint alone = False
        if self._closed:
            return
        if self._pid != os.getpid():
            self._closed = True
            return
        self.stop()
        with self._gate:
            alone = not self._in_loop
            self._in_loop = True
        if alone:
            with nogil:
                committer_run(&self._committer)
            self._ended.set()
        self._ended.wait()
        self._closed = True
        self._give_up()

    def stats(self):
        """Return counters of committer and store as a dictionary of numbers, and two texts.

        ``last_error`` is the last failure, ``trouble`` why nothing can be stored now, "" when it can.
        Locks: takes `_gate`.
        """
        cdef int64_t error = relaxed_load(&self._store.last_error)
        cdef int64_t trouble = relaxed_load(&self._store.trouble)
        cdef DedupeCounts counts
        cdef dict found = {
            "commits": relaxed_load(&self._committer.commits),
            "entries": relaxed_load(&self._committer.entries),
            "refused": relaxed_load(&self._committer.refused),
            "queued_bytes": relaxed_load(&self._committer.queued_bytes),
            "failures": relaxed_load(&self._store.failures) + relaxed_load(&self._memory.failures),
            "dropped_entries": relaxed_load(&self._store.dropped_entries) + relaxed_load(&self._memory.dropped_entries),
            "dropped_records": relaxed_load(&self._store.dropped_records) + relaxed_load(&self._memory.dropped_records),
            "dropped_bytes": relaxed_load(&self._store.dropped_bytes) + relaxed_load(&self._memory.dropped_bytes),
        }
        found["damaged_entries"] = relaxed_load(&self._store.damaged_entries)
        if self._has_window:
            dedupe_counts(&self._dedupe, &counts)
            found.update(counts)
        found["last_error"] = env_error(<int>error).decode("utf-8", "replace") if error else ""
        found["trouble"] = env_error(<int>trouble).decode("utf-8", "replace") if trouble else ""
        return found


def _boot_number():
    """Return the 16 bytes that name this boot of the machine, None where they are not known.

    Locality: GIL.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return uuid.UUID(file.read().strip()).bytes
    except (OSError, ValueError):
        return None


def _file_bytes(str path):
    """Return the size of the data file, 0 while there is none.  Locality: GIL."""
    try:
        return os.stat(os.path.join(path, "data.mdb")).st_size
    except FileNotFoundError:
        return 0


cdef void _release(void* origin, Entry* chain) noexcept nogil:
    """Release entries that nobody takes back: no server has the store.  Locality: committing thread."""
    entry_free_chain(chain)


cdef void _give_up_in_child(void* context) noexcept nogil:
    """Close the inherited descriptors, which would keep the directory locked while the forked child lives.

    Locality: the child's only thread.
    """
    cdef int* claims = <int*>context
    cdef int i
    for i in range(2):
        if claims[i] >= 0:
            close(claims[i])
            claims[i] = -1


def _lock_directory(str path):
    """Take the writer's locks of a directory and return their descriptors.  Raises StoreError.

    The lock file names the process that holds it.  The directory's own lock holds even if the lock file is removed.
    """
    cdef str name = os.path.join(path, "writer.lock")
    cdef int folder = -1
    cdef int held = -1
    try:
        held = _locked_file(name)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            if failure.errno == errno.EWOULDBLOCK:
                raise
            # A file system without locks of directories: the file's must do.
    except OSError as failure:
        for fd in (held, folder):
            if fd >= 0:
                os.close(fd)
        if failure.errno != errno.EWOULDBLOCK:
            raise store_fault(failure.errno, path, "lock the store") from failure
        holder = _holder(name)
        raise StoreError(
            f"the store {path!r} is in use by another hub (process {holder})",
            code="STORE_TAKEN",
            hint="stop that hub, or give this one its own directory",
            details={"path": path, "holder": holder},
        ) from failure
    try:
        os.ftruncate(held, 0)
        os.pwrite(held, b"%d\n" % os.getpid(), 0)
    except OSError:
        pass        # the lock holds also where a full disk has no room for our name
    return held, folder


def _locked_file(str name):
    """Open and lock a file that has this name afterwards, too; return its descriptor.  Raises OSError."""
    while True:
        held = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(name) and os.path.samestat(os.fstat(held), os.stat(name)):
                return held
        except OSError:
            os.close(held)
            raise
        os.close(held)      # it was removed between the two calls


def _holder(str name):
    """Return the process that the lock file names.  Locality: GIL."""
    try:
        with open(name, "rb") as file:
            return file.read(20).decode("ascii", "replace").strip() or "unknown"
    except OSError:
        return "unknown"
