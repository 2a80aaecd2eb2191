"""Topics of the hub's RocketMQ port, and the listener as its thread sees it.

What lives here.  `remoting`: what the thread needs of the compiled listener, and messages on their way to the store.
`table`: the topics that there are, and what may be sent to them.  `kept`: what was configured, and what is known of
resets, in the store.  `routes`: where clients are told that topics are.

Threads.  There are none here: time is an argument, and one thread at a time calls.

What it may use.  `dataproxy.hub.rocketmq.clients.actions`, the compiled view of the store, `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
