"""Decoding of stored requests: for the hub's own readers, and for readers that get them over HTTP.

What lives here.  `entry`: one stored request.  `arrow`: record batches of many.

Runs on any thread, without a hub; batches need pyarrow.
"""

__all__: list[str] = []
