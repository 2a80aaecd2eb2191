"""Which proxies a producer sends to: targets, names, and the answers of InLong's Manager.

What lives here.  `targets`: targets and the addresses behind names.  `manager`, `managers`, `answer`: the question to
one Manager or several, and the decoded answer; `credentials`: the header that proves who asks.  `calls`, `limited`:
HTTP connections and calls that end in time.  `listfile`: lists in files; `smallfile` reads them.  `cache`: lists kept
for starts without a Manager.  `asking`: one question, whatever the target is.  `clusters`: answers become clusters with
numbers.  `pace`: when it is time to ask.  `proxies`: the clusters of one producer, found at the start and refreshed.

Threads.  The thread that opens a producer, then the producer's discovery thread; `limited` starts short-lived ones.

What it may use.  ``dataproxy.config`` and `threads` beside this folder; no compiled module, and no producer.
"""

__all__: list[str] = []
