"""Ranges of a topic: which partitions there are, where they begin and end, and the messages between two offsets.

What lives here.  `places`: the partitions of topics, and their brokers.  `calls`: calls to brokers, one after the
other or many at once.  `registering`: registrations under names that nobody else has a partition under.  `bounds`:
where partitions begin and end.  `reader`: the messages of one range.  `keeping`: a group kept for one reader of its
topics, and its stored offsets.

Threads.  Everything runs on the caller's thread, but for the loop that makes the calls, and one thread in `keeping`.
An object is for one thread at a time.

What it may use.  The compiled core of a consumer, `listing` beside this folder, the protocol's messages.  No member of
a group, and no Spark.
"""

__all__: list[str] = []
