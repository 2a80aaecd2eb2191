"""Client side of the Python API; the import of one module does not load the others.

What lives here.  `producer`, `asynchronous`: the two producers; `asyncbatch`, `room`, `worker` belong to the second.
`arguments`, `lifecycle`, `endsignals`, `readiness`: start, end and forks.  `stats`: snapshots.
`shares`: how many proxies are in use.  `kinds`: what target and options mean for the core.
`ingest` takes what is sent, `results` hands results out, `discovery` finds proxies; none of the three imports another.
`tubemq` is for producers of TubeMQ's topics, and sees `discovery` and `ingest`.
"""

__all__: list[str] = []
