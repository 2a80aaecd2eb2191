"""Frames read for people: a second reader of the wire, in plain Python, that says what is wrong with a frame.

The compiled reader below ``dataproxy._core.wire`` refuses a wrong frame; this one goes on and names the field.

What lives here.  `inlong`: frames and their fields.  `attributes`, `items`, `snappy`: what is in them.  `requests`:
the few frames that `dataproxy doctor` sends.

There are no sockets and no threads here; all functions may be called from any thread.
"""

__all__: list[str] = []
