"""What every other folder of the core is built with; it knows no message, no frame and no connection.

What lives here.  Growing buffers (``buf``), large blocks that are used again (``blocks``) and
borrowed bytes (``slice``); status codes (``status``); timers in a
heap (``timers``); clocks that a simulation can replace (``clock``); the histogram of latencies (``hist``, ``hdr``);
decimal numbers and UTF-8 (``text``); any bytes as such a text (``percent``); hashes, checksums and random numbers
(``siphash``, ``crc``, ``rand``); fields of
protobuf messages (``protobuf``); snappy
blocks (the folder ``snappy``); columns in Arrow's layout (``column``);
addresses of sockets (``address``); the hook that runs in a forked child (``forks``); types with slots of C
(``calltypes``), and what keeps Python code from making empty objects (``made``).

Threads.  Any thread, without the GIL unless a function makes Python objects.  A struct belongs to one owner, who
passes a pointer to it: the functions take no lock.  Only the list of ``forks`` has a lock of its own, and ``blocks`` a
flag that nobody waits for.

What it may use.  ``plat`` and other files of this folder.

Functions return a status and raise nothing.  A function that is on the way of each message is ``inline`` in a
``.pxd``.
"""
