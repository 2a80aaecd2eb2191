"""Commands that run a hub or look into one.

What lives here.  `command`: ``dataproxy hub``.  `tail`, `stats`, `store`: records, counts, and the directory of a
store. `client`: the hub's HTTP API as these commands use it. `eventstream`: server-sent events as messages.
`overtaken`: what a store has dropped before a command could read it.

Threads.  The main thread; signals end the commands.

What it may use.  ``dataproxy.hub``, only inside functions, because other commands must not load it.
"""

__all__: list[str] = []
