"""Programs that one measurement runs in a process of its own; each prints one JSON object."""

__all__: list[str] = []
