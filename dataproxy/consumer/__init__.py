"""Consumers of TubeMQ's topics, and of queues that a hub pushes by RocketMQ's protocol.

What lives here.  `consumer` and `asynchronous`: Consumer and AsyncConsumer; `base`: what both share.
`kinds`: of which parts, by the target.  `pushed`: the parts for RocketMQ.  `group`: what a member of a group of TubeMQ
decides, without sockets.  `driver`: the thread that makes its calls; `names`: addresses of hosts.
`state`: what the driver tells the application; `stats`: its counts as values; `outcomes`: errors of confirms and
groups; `places`: offsets that the application names.  `inlong`: records in the containers of DataProxies.
`seen`: which of them were done with.  `listing`: what topics a cluster has.  `arguments` and `target`: what is given;
`ending`: consumers that are open when the process ends.

Threads.  The loop of the compiled core reads packs and makes calls, without the GIL.  The driver's thread alone calls
the member.  Everything public may be called from any thread.

What it may use.  `config`, `trust`, `process`, the core, `dataproxy.wire.tubemq`, of which the control messages need
the package `protobuf`, and in `pushed` `dataproxy.rocketmq`.
"""

__all__: list[str] = []
