"""Producers in monitoring tools: Prometheus, OpenTelemetry, and ``logging``.

What lives here.  `prometheus`, `opentelemetry`: collector and meters, both made from the table in `metrics`.
`tracing`: spans.  `logship`: a handler that sends log records.  `watched`: the producers that are shown.

Each module needs its own library, named in its docstring, and nothing is loaded before a module is imported.
"""

__all__: list[str] = []
