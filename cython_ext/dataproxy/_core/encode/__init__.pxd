"""Arrow columns as text: the bodies of messages, made of the rows of a table.

What lives here.  ``nodes`` reads an Arrow schema and array into a tree of nodes, once for each batch.  ``lines``
writes rows, one text after the other in one buffer, as JSON, delimited text or key-value text.  ``values`` writes one
value by its type, with ``numbers`` (integers, decimals), ``floats`` (the shortest text that reads back as the same
number), ``times`` (dates and times) and ``texts`` (escapes).

Threads.  Any thread, without the GIL.  A tree that is being opened or closed belongs to one thread.  The caller keeps
the Arrow buffers alive while the tree is used.

Locks.  None.

What it may use.  ``base`` and ``plat``.  It knows no stream, no producer and no wire: ``producer/ingest`` calls it.
"""
