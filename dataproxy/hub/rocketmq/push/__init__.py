"""Messages that a hub pushes to members of groups, which acknowledge them: what is decided, and what is kept.

What lives here.  `sessions`: who has which queue, what of it is pushed and not acknowledged, and what becomes of who
is slow; it has no store and no sockets.  `positions`: where groups are, by node, group and topic.

Threads.  There are none here: time is an argument, and one thread at a time calls.

What it may use.  `dataproxy.hub.rocketmq.clients`, `dataproxy.hub.rocketmq.topics`, `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
