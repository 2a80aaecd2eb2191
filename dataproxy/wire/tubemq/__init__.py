"""TubeMQ's control messages, and the texts in them.

What lives here.  `messages`: protobuf's classes of the messages in messages.proto; the messages on the way of data are
read and written by `dataproxy._core.wire.tubemq` instead.  `reading`: messages made of bytes.  `texts`: brokers,
partitions and subscriptions, which travel as texts.  `deployed`: texts of what a broker has.  `flow`: rules of how much
a group may read.  `credentials`: what proves who a client is.  `calls`: frames read for people, by `dataproxy frames`.

Threads.  There are none here, and no sockets; all functions may be called from any thread.

What it may use.  `messages` needs the package `protobuf`, and so does the reader of `calls`, which also has
`dataproxy.wire.inlong`'s names for what is wrong.
"""

__all__: list[str] = []
