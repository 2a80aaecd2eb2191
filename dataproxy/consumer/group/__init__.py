"""A member of a group: what it decides about masters, brokers and partitions.

What lives here.  `membership`: its life, at masters and at brokers.  `member`: one whose partitions a master gives and
takes; `chooser`: one whose application chooses.  `masters`: which master is asked, and when.  `holdings`: the
partitions that it holds, and how it gets and gives them.  `asking`: what it asks and says.

Threads.  One thread at a time calls a member; there are none here, and no sockets and no clocks: time is an argument.

What it may use.  `dataproxy.wire.tubemq`, which needs the package `protobuf`.
"""

__all__: list[str] = []
