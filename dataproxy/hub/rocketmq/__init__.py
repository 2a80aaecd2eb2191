"""The hub as a RocketMQ broker.

What lives here.  `registry`: who is connected and what that means for others; it answers what clients and
administrators ask about clients and groups.  `clients`: producers, members, locks, filter servers, and the
notifications for them.  `groups`: configurations of groups, resets of offsets, questions to clients, transactions.
`service`: the thread that answers calls of control.  `membership`: calls about clients and groups.  `offsets`: those
about offsets.  `sends`, `pulls`: messages, and requests for some, that a server loop leaves to the thread; `sql`: the
filters of these.  `queries`: messages by a key.  `replies`: messages for a client that waits for them.  `pushes`:
messages that are sent without being asked for; `push` decides for them.  `delays`, `retries`, `transactions`: messages
for later.  `topics` has the topics, and the listener as the thread sees it.
Folders import one way: `push`, `groups` and `topics`, then `clients`; `push` uses `topics`, too.

Threads.  One, `dataproxy-hub-rocketmq`, runs `Service.serve`; others call `Service.run`, `stop` and `stats`.  Below
`service` one thread at a time calls, and time is an argument.  The registry does nothing by itself: what is to be sent
or closed comes out as actions.

What it may use.  `dataproxy.hub.clients`, the registry that all protocols of the hub share, `dataproxy.hub.tasks`, the
compiled listener and view of the store, and `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
