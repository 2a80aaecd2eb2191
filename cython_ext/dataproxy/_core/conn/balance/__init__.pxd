"""Which proxies are used, and which of its connections a frame takes.

What lives here.  ``places``: which connections take frames, and which proxy one connects to.  ``router``: which
connection a frame takes, and how long one waits (choice, doubt, load, backoff, retry budget).  ``outliers``: proxies
that do worse than their peers are out for a while.  ``standby``: connections that are kept ready, and change places
with others.

Threads and locks: as in ``conn``.
"""
