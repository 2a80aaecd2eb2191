"""Consumers to which a hub pushes, by RocketMQ's protocol: the same calls as for TubeMQ's topics.

What lives here.  `engine`: a member of a group, made of the client in `dataproxy.rocketmq`, with the names that a
consumer knows of the compiled core and of its driver.  `packs`: which messages wait, which the application has, what
became of them, and who waits.  `unpacking`: bodies that were packed.  `reader`: one queue.  `options`: which options
have a meaning.

Threads.  Frames come on the thread that reads the client's connections; its keeper makes calls that wait.  Everything
of `engine` and `packs` may be called from any thread.

What it may use.  `dataproxy.rocketmq`, `dataproxy.wire.rocketmq`, the core, and the modules of the folder above.
"""

__all__: list[str] = []
