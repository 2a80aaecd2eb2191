"""The tables of options, and nothing else: what each option is called, its type, default, range and text.

What lives here.  `producer` and `hub`: their options.  `spark`: options that only the Spark sink and reader have.
`aliases`, `kafka`: names of the official SDKs' and of Kafka's options, and what stands for them here.

Threads.  Constants; any thread.

What it may use.  `option`, `rules` and `units` beside this folder.
"""

__all__: list[str] = []
