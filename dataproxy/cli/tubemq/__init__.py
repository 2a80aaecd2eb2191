"""``dataproxy consume`` and ``dataproxy topics``: messages and topics of TubeMQ.

What lives here.  `consume`: the options of the one command.  `reading`: its run, its progress and its report.
`printing`: messages as bytes for stdout.  `topics`: the other command.

Threads.  The main thread; the consumer has threads of its own.

What it may use.  ``dataproxy.consumer``, only inside functions: it needs the package ``protobuf``, and ``--help`` must
not load it.
"""

__all__: list[str] = []
