"""The tables of options, and nothing else: what each option is called, its type, default, range and text.

What lives here.  `producer` and `hub`: their options.  `spark`: options that only the Spark sink and reader have.
`aliases`: names of the official SDKs' options and what stands for them here, from `cpp` (with Python's), `java` and
`golang`; `conversions` and `reasons` are what their entries are made of.  `kafka`: names of Kafka's options.

Threads.  Constants; any thread.

What it may use.  `option`, `rules` and `units` beside this folder.
"""

__all__: list[str] = []
