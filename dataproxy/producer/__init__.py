"""Client side of the Python API; the import of one module does not load the others."""

__all__: list[str] = []
