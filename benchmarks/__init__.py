"""Benchmarks of the producer, the Spark sink and the hub against peers and the machine's own floor."""

__all__: list[str] = []
