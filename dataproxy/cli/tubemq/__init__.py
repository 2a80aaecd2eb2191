"""``dataproxy consume``, ``dataproxy topics`` and ``dataproxy tubemq``: TubeMQ's messages and topics, a hub as TubeMQ.

What lives here.  `consume`: the options of the one command.  `reading`: its run, its progress and its report.
`printing`: messages as bytes for stdout.  `topics`: the second command.  `administer`: the third, which looks into a
hub; `change`: what changes something there; `tables`: what both print.

Threads.  The main thread; the consumer has threads of its own.

What it may use.  The hub's HTTP API, by ``dataproxy.cli.hub``.  ``dataproxy.consumer``, only inside functions: it needs
the package ``protobuf``, and ``--help`` must not load it.
"""

__all__: list[str] = []
