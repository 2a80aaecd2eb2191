"""Reading what a hub holds: ``spark.read.format("dataproxy")``.

What lives here.  `options`: the options of a read.  `plan`: which offsets are read.  `source`: the reader for Spark.
`hubclient`: requests of both to the hub's Manager server.  `columns`: columns made from decoded records.

Threads.  `plan` runs on the driver, in the thread that plans; `source` runs in tasks, in the worker's one task thread.

What it may use.  ``dataproxy.stored``, ``dataproxy.config``, HTTP calls of ``dataproxy.producer``, and the modules
beside this folder; nothing of a write.
"""

__all__: list[str] = []
