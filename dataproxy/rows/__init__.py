"""Rows of tables as messages: what the Spark sink and ``Producer.send_rows`` share; needs neither Spark nor pyarrow.

What lives here.  `options`: the options of ``send_rows``.  `plan`: what each column is for.  `bodies`: how a row
becomes a body.  `zones`: time zones for the encoders.  `problems`, `badfile`: rows that cannot be sent.
"""

__all__: list[str] = []
