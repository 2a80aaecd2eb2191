"""Commands about the clients of a running hub, of all its protocols.

What lives here.  `view`: clients, groups, locks and transactions.  `events`: what has happened.  `offsets`: where
groups go on.

Threads.  The main thread; signals end the commands.

What it may use.  The hub's HTTP API by ``dataproxy.cli.hub.client``, and the tables and options of
``dataproxy.cli.tubemq``.
"""

__all__: list[str] = []
