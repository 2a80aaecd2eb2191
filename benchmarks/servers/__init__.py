"""Servers that a measurement talks to; each prints its port first and its counts after SIGTERM."""

__all__: list[str] = []
