"""Help for tests of programs that use this package: an embedded hub, and a pytest plugin with a fixture."""

from dataproxy.hub import Hub

__all__ = ["Hub"]
