"""Decoding of stored requests: for the hub's own readers, and for readers that get them over HTTP.

Runs on any thread, without a hub; batches need pyarrow.
"""

__all__: list[str] = []
