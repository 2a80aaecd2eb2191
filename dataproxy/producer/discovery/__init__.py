"""Which proxies a producer sends to: targets, names, and the answers of InLong's Manager.

What lives here.  `targets`: targets and the addresses behind names.  `manager`, `managers`, `answer`: the question to
one Manager or several, and the decoded answer.  `calls`, `limited`: HTTP connections and calls that end in time.
`proxies`: the addresses of one producer, found at the start and refreshed.

Threads.  The thread that opens a producer, then the producer's discovery thread; `limited` starts short-lived ones.

What it may use.  ``dataproxy.config`` and `threads` beside this folder; no compiled module, and no producer.
"""

__all__: list[str] = []
