"""What a task does with its partition: it gives record batches to a producer, and waits until all rows have a result.

What lives here.  `partition`: the whole way of one partition.  `producers`: the producers of a worker process, which
later tasks use again.  `inputs`, `nodelay`: the worker's connection to the JVM.  `blocks`: record batches cut at
blocks of rows.  `attrcolumn`, `givenids`: two columns on their way to the producer.  `rows`: record batches made from
rows.

Threads.  The one task thread of Spark's Python worker; the producers have threads of their own.

What it may use.  `planning`, `reporting`, the modules beside this folder, and ``dataproxy.producer`` with its core.
"""

__all__: list[str] = []
