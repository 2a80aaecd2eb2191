"""Loggers of the package, below ``dataproxy``: quiet until the application configures logging."""

import logging

__all__ = ["logger"]

# Without this, warnings would go to stderr through logging's handler of last resort.
logging.getLogger("dataproxy").addHandler(logging.NullHandler())


def logger(area: str = "") -> logging.Logger:
    """Return the logger of an area of the package: ``conn``, ``route``, ``ack``, ``callback``, ``hub`` ..."""
    return logging.getLogger(f"dataproxy.{area}" if area else "dataproxy")
