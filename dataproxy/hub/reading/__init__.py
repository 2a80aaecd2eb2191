"""Reading a store: of a running hub, beside it, or without one.

What lives here.  `records`: records and counts, read back from a view of the store.  `store`: a durable store that is
opened from its directory.  `verify`: the search for damage, and `pages`: the checked reader of LMDB's pages for it.

Threads.  The thread that calls; read transactions are short, and nothing here writes.

What it may use.  ``dataproxy._core.server.store.view`` and ``dataproxy.stored``; it knows no hub.
"""

__all__: list[str] = []
