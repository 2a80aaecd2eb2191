"""What travels: a pack of messages of one stream, which becomes one frame.

What lives here.  ``pack``: the struct with bytes, number, deadline, state, attempts and result of a pack, the lists
that hold packs, and the pool that counts their memory and keeps used buffers.  ``settled``: a pack gets its result,
once.  ``held``: large bodies that a pack does not copy.  ``parts``: the results of a pack that was divided because of
one message.  ``keyqueue``: the queue of packs that have one key, of which one at a time is under way.  ``unknown``:
what is noted about a stream that servers do not know.

Threads.  A pack has one owner at a time: the batcher while it is open, an executor from the inbox until it is
settled, then the dispatcher, then the pool.  Its ``state`` says in which list it is.  Only its owner writes to it.  A
sender may take back a pack that was not written yet: it becomes the owner by a compare-and-swap on ``Pack.claim``.

Locks.  ``PackPool.lock`` guards the pool; no other lock is taken while it is held.

What it may use.  ``base`` and ``plat``.  It knows no stream and no socket: what it refers to above it is an opaque
pointer.
"""
