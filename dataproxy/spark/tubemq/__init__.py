"""Reading topics of TubeMQ: ``spark.read.format("tubemq")`` and ``spark.readStream``.

What lives here.  `source`: the class behind the format, and the reader of a batch.  `stream`: the reader of a stream;
`following`: what its driver knows of the topics.  `options`: their options.  `offsets`: what ``startingOffsets`` and
``endingOffsets`` mean, and how much a micro-batch may have.  `plan`: the ranges of a batch.  `ranges`: one range in a
task.  `columns`: rows as messages, `joined`: small batches made large ones, and `unpacked`: rows as records of InLong's
containers.

Threads.  `plan` and `stream` run on the driver, in the thread that plans; `ranges` runs in tasks, in the worker's one
task thread.

What it may use.  ``dataproxy.consumer.ranges``, ``dataproxy.stored``, ``dataproxy.config`` and the modules beside
this folder; nothing of a write.
"""

__all__: list[str] = []
