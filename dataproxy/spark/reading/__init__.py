"""Reading what a hub holds: ``spark.read.format("dataproxy")``.

`plan` runs on the driver and decides which offsets are read; `source` runs in tasks, which ask the hub's HTTP door.
"""

__all__: list[str] = []
