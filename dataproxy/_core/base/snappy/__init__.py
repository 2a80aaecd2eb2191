"""Snappy blocks.  ``compress`` needs libsnappy, and is loaded before all that need it."""

from dataproxy._core import load

__all__: list[str] = []

load("dataproxy._core.base.snappy.compress")
