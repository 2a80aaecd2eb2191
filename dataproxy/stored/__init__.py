"""Requests as a hub stores them, decoded: for its own readers, and for those that get them over its HTTP door.

Runs on any thread, and needs no hub: pyarrow alone, for batches.
"""

__all__: list[str] = []
