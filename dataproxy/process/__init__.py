"""What the package takes of the process: threads of the operating system.

What lives here.  `threads`: native threads, most of which get no signals; `changes`: waits that stay whole when a
signal handler raises.

Threads.  Any.  What it may use.  `errors`.
"""

__all__: list[str] = []
