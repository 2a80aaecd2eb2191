"""Sockets and loops: this folder does what ``conn`` decides.

What lives here.  ``executor``: one thread with one epoll set and one pool of connections; it also has the inbox
through which other threads give it packs and proxy lists, and closes its descriptors in a forked child.  ``poller``:
an epoll set, and the wake-up of the loop that owns it.  ``transport``: connect, accept, read and write as a table of
functions, so that a simulated network, or another kind of connection, can take the place of TCP.  ``tls``: the table
of TLS, over OpenSSL; ``tlsholder``: the settings that its connections share, and sessions to resume; ``tlscontext``:
these settings made from files.  ``recvbuf``: received bytes of one connection, which have memory only while there are
some.  ``server`` uses all of these except ``executor``.

Threads.  The loop's own thread, without the GIL.  Other threads call only the functions that put something into an
executor's inbox, and ``wakeup_signal``.

Locks.  ``Executor.lock`` guards the inbox, ``Executor.registry`` the table of connections, which readers of
statistics read; ``TlsHolder.lock`` is a leaf.  No lock is held during a call that can block.

What it may use.  ``conn``, ``wire/api``, ``pack``, ``base`` and ``plat``.
"""
