"""``dataproxy send``: lines of stdin or of files as messages.

What lives here.  `command`: the options.  `sending`: the run, its progress and its report.  `lines`: lines of a
descriptor.

Threads.  The main thread; the producer has threads of its own.

What it may use.  ``dataproxy.Producer``, only inside functions, because ``--help`` must not load it.
"""

__all__: list[str] = []
