"""Groups of the hub's RocketMQ port, beyond who is in them.

What lives here.  `configs`: the configurations of consumer groups.  `resets`: offsets that are set to a time, and
commits that come too late.  `questions`: requests to clients that are answered, and who waits for the answers.
`transactions`: half messages, and the producers that are asked how they end.  `holdings`: which queues members hold.
`idling`: the alarm for members that hold queues and do not pull.

Threads.  There are none here: time is an argument, and one thread at a time calls.

What it may use.  `dataproxy.hub.rocketmq.clients`, `dataproxy.wire.rocketmq`.
"""

__all__: list[str] = []
