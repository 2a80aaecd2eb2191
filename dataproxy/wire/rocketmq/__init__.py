"""RocketMQ's control messages: what stands in headers and bodies beside the way of data.

What lives here.  `codes`: numbers and names of requests, answers, languages and versions.  `headers`: the fields of
each code as a record.  `dialect`: bodies that are nearly JSON, read with bounds and typed; what is written is JSON.
`bodies`: records of those bodies.  `queues`: bodies that map queues to something.  `names`: message ids, client ids,
topics, groups, hashes of tags.  `commands`: frames read for people, by `dataproxy frames`.  `messages`: stored
messages and sends, for the few that a control thread makes or looks at.

On the way of data, sends, pulls and stored messages are read and written by `dataproxy._core.wire.rocketmq` instead.

Threads.  There are none here, and no sockets; all functions may be called from any thread.

What it may use.  `msgspec`, the package's errors, and in `commands` the names of `dataproxy.wire.inlong` for what is
wrong.
"""

__all__: list[str] = []
