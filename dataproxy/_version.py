"""The version of the package, kept apart so that the build reads it without importing anything."""

__all__ = ["__version__"]

__version__ = "0.1.0"
