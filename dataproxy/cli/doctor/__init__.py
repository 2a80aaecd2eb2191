"""``dataproxy doctor``: what is wrong between this machine and a cluster.

What lives here.  `command`: the options, progress, and the exit code.  `shown`: findings as a table and as advice.

Threads.  The main thread; a signal ends the examination, and what was found so far is shown on a terminal.

What it may use.  ``dataproxy.doctor``, inside functions, so that other commands start fast.
"""

__all__: list[str] = []
