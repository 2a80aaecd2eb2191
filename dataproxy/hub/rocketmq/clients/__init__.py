"""Clients of the hub's RocketMQ port: who they are, and what is theirs.

What lives here.  `actions`: what the thread that owns a registry is to do, and who a client is.  `limits`: times and
bounds.  `heartbeats`: what a client says of itself, read once.  `producers` and `members`: the groups that clients
produce and consume for.  `notices`: members that are to hear that their group has changed.  `locks`: queues that one
member alone consumes.  `filterservers`: a table of addresses.

Threads.  There are none here: time is an argument, and one thread at a time calls.

What it may use.  `dataproxy.hub.clients`, `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
