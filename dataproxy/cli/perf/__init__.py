"""The commands ``dataproxy perf``: load tests, their reports, and what several of them say.

What lives here.  `single`: one run, and its report again.  `sets`: the largest rate, and two sets of runs compared.

Threads.  That of the command; what shows the progress of a run is called on it.

What it may use.  `outcome` and `optionwords` beside this folder, and `dataproxy.perf` inside functions.
"""

__all__: list[str] = []
