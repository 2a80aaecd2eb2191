"""Client side of the Python API."""

__all__: list[str] = []
