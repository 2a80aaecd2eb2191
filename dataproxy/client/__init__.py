"""Client side of the Python API; what uses one module of it does not load the others."""

__all__: list[str] = []
