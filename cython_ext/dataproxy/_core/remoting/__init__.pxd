"""Connections of RocketMQ's clients, and what is done for each message that goes out or comes in.

What lives here.  ``link``: one connection; requests wait on it for their answers.  ``answers``: what came, as objects.
``messages``: the messages of a pull, as applications see them.  ``batches``: these, in the calls of a listener.
``outgoing``: the messages of a producer, checked and written.  ``sends``: those that are under way: which queue each
goes to, when it is written, and how many had which result.

Threads.  Any thread may write to a link; one reads it.  All of it is under the GIL, which is released for calls of the
system.  What is rare is decided by ``dataproxy.rocketmq``: connections, routes, what is tried again.

What it may use.  ``base``, ``plat`` and ``wire.rocketmq``.
"""
