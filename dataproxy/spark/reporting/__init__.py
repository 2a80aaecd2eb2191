"""What a write counted: its tasks, attempts that failed, the job, and where it is told.

What lives here.  `reports`: the counts of a partition and their sum.  `attempts`, `room`: files in which each attempt
of a task leaves its counts, however it ends.  `copies`, `datatimes`, `latency`: rows that may be stored twice, the
range of data times, histograms.  `outlets`: log, file and function that get the report.  `counters`, `progress`:
numbers that the driver can read while a write runs.

Threads.  Counts are made in the task thread of a worker and added up in the driver's thread that commits; `counters`
and `progress` say their own rules.

What it may use.  The modules beside this folder, and neither `planning` nor `writing`.
"""

__all__: list[str] = []
