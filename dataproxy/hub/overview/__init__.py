"""What an operator sees of a hub: its clients of all protocols, groups, locks, transactions, and what has happened.

What lives here.  `events`: what has happened, with a bound.  `producers`: producers of DataProxy in the registry of
clients.  `rocketmq` and `tubemq`: rows about the clients and groups of these protocols, made on their own threads.
`places`: offsets that shall be set, planned and checked whole.  `pages`: pages of rows, each behind a key.  `view`: all
of it for the HTTP port.

Threads.  None of its own.  Events and producers have a lock each; the rest is called by reading threads of the HTTP
port, and asks the threads of the protocols by `Service.run`.

What it may use.  `dataproxy.hub.clients`, `dataproxy.hub.idling`, and the services of `dataproxy.hub.rocketmq` and
`dataproxy.hub.tubemq`, which are imported only where a hub has them.
"""

__all__: list[str] = []
