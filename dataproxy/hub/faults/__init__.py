"""Faults on request: what a hub does wrong when a test asks for it.

What lives here.  `kinds`: the table of faults.  `fault`: the description of one fault, checked.  `armed`: the faults
of a running hub, which it arms, counts and removes.

Threads.  Any thread; the compiled core guards what is armed.

What it may use.  ``dataproxy._core.server.faults`` and the hub's listeners.
"""

__all__: list[str] = []
