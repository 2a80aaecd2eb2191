"""Consumers of topics: what decides, without sockets.

What lives here.  ``flow``: how long a partition waits before its next pack is asked for, by the rules of the cluster
and of its group.

Threads.  The owner of a struct, without the GIL.  Locks: none.

What it may use.  ``base``.  Time is an argument.
"""
