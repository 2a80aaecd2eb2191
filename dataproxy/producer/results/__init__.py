"""Results on their way to the application: callbacks, log records, the end of a producer that nobody closed.

What lives here.  `dispatcher`: the one thread that calls user code and writes the log.  `callbacks`: where callbacks
run, and what their exceptions do.  `ahead`: the limit on results that another thread's callbacks have not handled yet.

Threads.  The producer's dispatcher; callbacks may run in an executor or an event loop of the application.

What it may use.  ``dataproxy._core.producer.results`` and `threads` beside this folder.
"""

__all__: list[str] = []
