"""Producers in monitoring tools: Prometheus, OpenTelemetry, and ``logging``.

Each module needs its own library, named in its docstring, and nothing is loaded before a module is imported.
"""

__all__: list[str] = []
