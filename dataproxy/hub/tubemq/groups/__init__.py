"""Groups of consumers at the hub's master.

What lives here.  `consumers`: calls of members whose partitions are divided here; `group`: one such group, its
members and the events for them; `balance`: who shall hold what; `wishes`: what a member asks for.  `choosers`: groups
whose members choose.

Threads.  There are none here: time is an argument, and one thread at a time calls.

What it may use.  The modules beside this folder for brokers and topics, rights, room and answers; the registry of
clients.
"""

__all__: list[str] = []
