"""TLS: whom connections trust, and what they show of themselves.

What lives here.  `files`: the options of one kind of connection, and the checks of the files they name.  `context`:
settings for Python's ``ssl``, which the Manager's connections and the hub's HTTP port use.  `faults`: why a
handshake of it failed.  `watched`: settings that follow changed files.

Threads.  `watched` has one thread for each producer or hub with TLS; everything else runs in its caller's.

What it may use.  ``dataproxy.config``, and of the compiled core the settings of connections.
"""

__all__: list[str] = []
