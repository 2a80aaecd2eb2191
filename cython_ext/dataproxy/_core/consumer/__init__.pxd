"""Consumers of topics: packs are asked for, handed to the application, and confirmed.

What lives here.  ``loop``: sockets, and the thread that serves them.  ``connection``: one connection, without its
socket.  ``fetch``: the partitions that are held, what is asked for them, and when.  ``flow``: how long a partition
waits before its next pack is asked for, by the rules of the cluster and of its group.  ``tubepack``: the messages of
one answer.  ``exchange``: what threads hand over to each other.  ``core``: the facade that ``dataproxy.consumer`` uses.
``pack``: packs and messages as Python sees them; ``gotpack``: packs of answers that came as bytes;
``pushedpack``: packs of messages of RocketMQ; ``arrowbatch``,
``packcolumns``, ``arrowtree``: as columns of Arrow; ``minutes``: the times in attributes.

Threads.  ``loop``, ``connection``, ``fetch`` and ``flow`` belong to the fetching thread, without the GIL.  The
application and the thread that drives the member of the group meet it in ``exchange``.  Locks: the exchange's; the
registry of ``fetch``, a leaf.

What it may use.  ``base``, ``net`` and ``wire/tubemq``; ``pushedpack`` also messages of ``remoting``.  In
``connection``, ``fetch`` and ``flow`` time is an argument.
"""
