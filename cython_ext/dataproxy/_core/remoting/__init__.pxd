"""Connections of RocketMQ's clients: frames go out and come in here, and nothing is decided.

What lives here.  ``link``: one connection; requests wait on it for their answers.  ``answers``: what came, as objects.
``messages``: the messages of a pull, as applications see them.

Threads.  Any thread may write to a link; one reads it.  All of it is under the GIL, which is released for calls of the
system.  Whoever reads a link decides: ``dataproxy.rocketmq``.

What it may use.  ``base``, ``plat`` and ``wire.rocketmq``.
"""
