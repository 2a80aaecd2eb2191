"""The command ``dataproxy``.  Results go to stdout, everything else to stderr."""

__all__: list[str] = []
