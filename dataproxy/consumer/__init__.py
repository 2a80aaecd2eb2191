"""Consumers of TubeMQ's topics.

What lives here.  `consumer` and `asynchronous`: Consumer and AsyncConsumer; `base`: what both share.  `group`: what a
member of a group decides, without sockets.  `driver`: the thread that makes its calls; `names`: addresses of hosts.
`state`: what the driver tells the application; `stats`: its counts as values; `outcomes`: errors of confirms and
groups; `places`: offsets that the application names.  `inlong`: records in the containers of DataProxies.
`seen`: which of them were done with.  `listing`: what topics a cluster has.  `arguments` and `target`: what is given;
`ending`: consumers that are open when the process ends.

Threads.  The loop of the compiled core reads packs and makes calls, without the GIL.  The driver's thread alone calls
the member.  Everything public may be called from any thread.

What it may use.  `config`, `trust`, `process`, the core, and `dataproxy.wire.tubemq`, which needs the package
`protobuf`.
"""

__all__: list[str] = []
