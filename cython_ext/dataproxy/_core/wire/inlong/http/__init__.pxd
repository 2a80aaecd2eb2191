"""HTTP report, the dialect of InLong's DataProxy for networks that let nothing else through: one request is one record.

What lives here.  ``head`` finds the end of a message and reads its head, for both roles; ``form`` percent-encodes and
decodes; ``server`` judges one whole request, ``answer`` writes answers; ``encode`` writes requests, ``decode`` reads
answers; ``codec`` is the table.

Threads.  Any thread, without the GIL; the caller owns all buffers.  Locks: none.

What it may use.  The same as the folder above, whose ``container`` writes what is stored.
"""
