"""Client connections, as far as they decide: no function here has a descriptor or asks for the time.

What lives here.  ``connection``: the structs of a connection and of a pool of them, and the legal state changes.
``pool``: connects, losses, new proxy lists.  ``clusters``: which connections take frames of a group.  ``balance``:
which proxies are used, and which connection a frame takes.  ``sendq``, ``inflight``, ``replies``: a frame is queued
and written, waits for its answer, and the answer is matched.  ``progress`` and ``heartbeat``: whether a connection
still works.  ``retry``, ``split``, ``settle``: what follows a refusal or a loss, and the result.  ``framing``: a
sealed pack becomes a frame.  ``keyqueues``: packs with a key go one after the other.  ``unknown``: packs of streams
that servers do not know yet.

Threads.  The executor that owns the pool, without the GIL.  Other threads read only counters, with relaxed atomic
operations.  In tests a simulator on virtual time takes the executor's place.

Locks.  None, except the lock of the pool of packs where a function says so.

What it may use.  ``wire/api``, ``pack``, ``base`` and ``plat``.  Received bytes and the time are arguments; work on
sockets is asked for by ``Connection.flags``, and ``net`` does it.
"""
